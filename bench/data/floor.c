// What the kernel takes for one HTTP request, one prepared query and one answer: system calls with epoll, and nothing else. It understands
// neither side: a read is a request, and rows are whole when `Z` is at their end. `floor PORT DATABASE_PORT CONNECTIONS`; bench/data.py runs it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
static int tcp(int port){int s=socket(AF_INET,SOCK_STREAM,0);struct sockaddr_in a={.sin_family=AF_INET,.sin_port=htons(port),.sin_addr.s_addr=htonl(INADDR_LOOPBACK)};if(connect(s,(void*)&a,sizeof a)){perror("connect");exit(1);}int one=1;setsockopt(s,IPPROTO_TCP,TCP_NODELAY,&one,sizeof one);return s;}
static int p32(char*b,int v){v=htonl(v);memcpy(b,&v,4);return 4;}
static int p16(char*b,int v){v=htons(v);memcpy(b,&v,2);return 2;}
static void until_ready(int s){char b[65536];for(;;){int n=read(s,b,sizeof b);if(n<=0){perror("pg");exit(1);}if(n>=6&&b[n-6]=='Z')return;}}
static int pgopen(int port){int s=tcp(port);char b[512];int n=4;n+=p32(b+n,196608);n+=sprintf(b+n,"user")+1;n+=sprintf(b+n,"bus")+1;n+=sprintf(b+n,"database")+1;n+=sprintf(b+n,"bus")+1;b[n++]=0;p32(b,n);write(s,b,n);until_ready(s);
 const char*q="SELECT id, name, price, stock FROM items WHERE id > $1 ORDER BY id LIMIT 10";
 n=0;b[n++]='P';int l=n;n+=4;n+=sprintf(b+n,"s")+1;n+=sprintf(b+n,"%s",q)+1;n+=p16(b+n,1);n+=p32(b+n,23);p32(b+l,n-l);b[n++]='S';n+=p32(b+n,4);write(s,b,n);until_ready(s);return s;}
static char query[128];static int qlen;
static void mkquery(void){char*b=query;int n=0;b[n++]='B';int l=n;n+=4;b[n++]=0;n+=sprintf(b+n,"s")+1;n+=p16(b+n,1);n+=p16(b+n,1);n+=p16(b+n,1);n+=p32(b+n,4);n+=p32(b+n,400);n+=p16(b+n,1);n+=p16(b+n,1);p32(b+l,n-l);b[n++]='E';l=n;n+=4;b[n++]=0;n+=p32(b+n,0);p32(b+l,n-l);b[n++]='S';n+=p32(b+n,4);qlen=n;}
static int client_of[65536],free_pg[64],nfree,queue[65536],qh,qt;static char is_pg[65536];static char answer[4096];static int alen;
static void ask(int client){if(nfree){int pg=free_pg[--nfree];client_of[pg]=client;send(pg,query,qlen,0);}else queue[qt++%65536]=client;}
int main(int c,char**v){int port=atoi(v[1]),pgport=atoi(v[2]);int most=c>3?atoi(v[3]):8;mkquery();int ep=epoll_create1(0);
 char body[2048];int bl=0;for(int i=0;i<10;i++)bl+=sprintf(body+bl,"<item><id>%d</id><name>item number %d</name><price>%d.25</price><stock>1</stock></item>",401+i,401+i,500+i);
 alen=sprintf(answer,"HTTP/1.1 200 OK\r\nContent-Type: application/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n%s",bl,body);
 int ls=socket(AF_INET,SOCK_STREAM|SOCK_NONBLOCK,0);int one=1;setsockopt(ls,SOL_SOCKET,SO_REUSEADDR,&one,sizeof one);struct sockaddr_in a={.sin_family=AF_INET,.sin_port=htons(port),.sin_addr.s_addr=htonl(INADDR_LOOPBACK)};if(bind(ls,(void*)&a,sizeof a)||listen(ls,512)){perror("bind");return 1;}
 struct epoll_event e={.events=EPOLLIN,.data.fd=ls};epoll_ctl(ep,EPOLL_CTL_ADD,ls,&e);
 for(int i=0;i<most;i++){int s=pgopen(pgport);fcntl(s,F_SETFL,O_NONBLOCK);is_pg[s]=1;free_pg[nfree++]=s;e.events=EPOLLIN|EPOLLET;e.data.fd=s;epoll_ctl(ep,EPOLL_CTL_ADD,s,&e);}
 struct epoll_event all[128];char b[65536];
 for(;;){int n=epoll_wait(ep,all,128,-1);for(int i=0;i<n;i++){int fd=all[i].data.fd;
  if(fd==ls){int s=accept4(ls,0,0,SOCK_NONBLOCK);if(s<0)continue;setsockopt(s,IPPROTO_TCP,TCP_NODELAY,&one,sizeof one);e.events=EPOLLIN|EPOLLET;e.data.fd=s;epoll_ctl(ep,EPOLL_CTL_ADD,s,&e);continue;}
  int r=recv(fd,b,sizeof b,0);
  if(is_pg[fd]){if(r<=0)exit(2);if(b[r-6]!='Z')continue;int cl=client_of[fd];send(cl,answer,alen,MSG_NOSIGNAL);if(qh!=qt){client_of[fd]=queue[qh++%65536];send(fd,query,qlen,0);}else free_pg[nfree++]=fd;}
  else{if(r<=0){close(fd);continue;}ask(fd);}
 }}}
