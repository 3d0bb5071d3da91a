#!/usr/bin/env bash
# CPU per proxied request of our relay, nginx and HAProxy: POST of one size to an echo backend, keep-alive.
#
# Each proxy has one worker pinned to core 0; backend and client share core 1. The proxies take turns, so that what
# else the machine does hits all of them; only the ratios within one run mean anything.
#
#   bench/direct.sh [-r ROUNDS] [-s SECONDS] [-c CONNECTIONS] [SIZE…]      default: 3 rounds of 3 s, 32, 1024 10240 102400
#
# Needs nginx, haproxy, wrk and the examples: cargo build --profile quick -p busbar-transport --examples
# (their directory: EXAMPLES, default ${CARGO_TARGET_DIR:-target}/quick/examples). RELAY: another relay command that
# takes LISTEN and BACKEND.
set -euo pipefail
rounds=3 seconds=3 connections=32
while getopts r:s:c: option; do
  case $option in
    r) rounds=$OPTARG ;; s) seconds=$OPTARG ;; c) connections=$OPTARG ;; *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
sizes=("${@:-1024}")
[ $# -gt 0 ] || sizes=(1024 10240 102400)
examples=${EXAMPLES:-${CARGO_TARGET_DIR:-target}/quick/examples}
base=${BASE_PORT:-29300}
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT

start() { # CORE COMMAND…
  local core=$1
  shift
  taskset -c "$core" "$@" >"$work/log.${#pids[@]}" 2>&1 &
  pids+=($!)
}

cat >"$work/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $work/nginx.pid; error_log $work/nginx.err;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path $work/b; proxy_temp_path $work/p; fastcgi_temp_path $work/f;
  uwsgi_temp_path $work/u; scgi_temp_path $work/s; client_max_body_size 0; keepalive_requests 100000000;
  upstream backend { server 127.0.0.1:$base; keepalive 512; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:$((base + 2));
    location / {
      proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";
      client_body_buffer_size 1m; proxy_buffers 64 16k; proxy_buffer_size 16k; proxy_busy_buffers_size 64k;
    }
  }
}
CONF
cat >"$work/haproxy.cfg" <<CONF
global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
  http-reuse always
listen front
  bind 127.0.0.1:$((base + 3))
  server backend 127.0.0.1:$base
CONF

start 1 "$examples/echo" "127.0.0.1:$base"
start 0 ${RELAY:-$examples/relay} "127.0.0.1:$((base + 1))" "127.0.0.1:$base"
busbar=${pids[-1]}
start 0 nginx -c "$work/nginx.conf" -p "$work"
start 0 haproxy -f "$work/haproxy.cfg"
haproxy=${pids[-1]}
sleep 1
nginx=$(pgrep -P "${pids[2]}" | head -1)

ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

for size in "${sizes[@]}"; do
  head -c "$size" /dev/zero | tr '\0' x >"$work/body"
  cat >"$work/post.lua" <<LUA
local f = io.open("$work/body"); wrk.body = f:read("*a"); f:close()
wrk.method = "POST"; wrk.headers["Content-Type"] = "text/plain"
LUA
  for ((round = 1; round <= rounds; round++)); do
    for peer in busbar:1 nginx:2 haproxy:3; do
      name=${peer%:*} port=$((base + ${peer#*:}))
      answer=$(curl -sS --data-binary @"$work/body" -H 'Content-Type: text/plain' "http://127.0.0.1:$port/" | cksum)
      [ "$answer" = "$(cksum <"$work/body")" ] || { echo "$name: wrong answer" >&2; exit 1; }
      before=$(ticks "${!name}")
      taskset -c 1 wrk -t1 -c"$connections" -d"${seconds}s" -s "$work/post.lua" "http://127.0.0.1:$port/" >"$work/wrk"
      after=$(ticks "${!name}")
      grep -E 'Socket errors|Non-2xx' "$work/wrk" >&2 && echo "$name: errors" >&2
      requests=$(awk '/requests in/ { print $1 }' "$work/wrk")
      awk -v n="$name" -v s="$size" -v r="$requests" -v t=$((after - before)) -v d="$seconds" -v hz="$(getconf CLK_TCK)" \
        'BEGIN { printf "%-8s %7d B  %6.1f us/request  %7d requests/s\n", n, s, t / hz * 1e6 / r, r / d }' | tee -a "$work/all"
    done
  done
done
echo "mean, and busbar as a share of it:"
awk '{ sum[$2, $1] += $4; n[$2, $1]++; sizes[$2] } END {
  for (s in sizes) for (p in n) { split(p, k, SUBSEP); if (k[1] == s) {
    mean = sum[p] / n[p]; own = sum[s, "busbar"] / n[s, "busbar"]
    printf "%7d B %-8s %6.1f us  %.2f\n", s, k[2], mean, own / mean } } }' "$work/all" | sort -n
