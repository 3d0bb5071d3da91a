import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;
import javax.crypto.KeyGenerator;
import javax.crypto.SecretKey;
import javax.security.auth.callback.*;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.*;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.apache.wss4j.common.WSEncryptionPart;
import org.apache.wss4j.common.crypto.*;
import org.apache.wss4j.common.ext.WSPasswordCallback;
import org.apache.wss4j.common.util.KeyUtils;
import org.apache.wss4j.dom.WSConstants;
import org.apache.wss4j.dom.engine.*;
import org.apache.wss4j.dom.handler.*;
import org.apache.wss4j.dom.message.*;
import org.w3c.dom.*;

/** WSS4J as the other side of a conversation. Each line of the input is: what, how, file in, file out; each line of the output `ok …` or `error …`. */
public class Wss4j {
    static final String SOAP = "http://schemas.xmlsoap.org/soap/envelope/";
    static final Map<String, byte[]> KEYS = new HashMap<>();
    static String me, other;
    static Crypto crypto;

    public static void main(String[] arguments) throws Exception {
        me = arguments[1];
        other = me.equals("client") ? "service" : "client";
        WSSConfig.init();
        Properties p = new Properties();
        String prefix = "org.apache.wss4j.crypto.";
        p.put(prefix + "provider", "org.apache.wss4j.common.crypto.Merlin");
        p.put(prefix + "merlin.keystore.type", arguments[0].endsWith("jks") ? "JKS" : "PKCS12");
        p.put(prefix + "merlin.keystore.password", "secret");
        p.put(prefix + "merlin.keystore.file", arguments[0]);
        crypto = CryptoFactory.getInstance(p);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] w = line.split(" ");
            try {
                System.out.println("ok " + (w[0].equals("open") ? open(w[2], w[3]) : secure(w[1], w[2], w[3])));
            } catch (Throwable error) {
                System.out.println("error " + String.valueOf(error).replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    static Document read(String file) throws Exception {
        DocumentBuilderFactory f = DocumentBuilderFactory.newInstance();
        f.setNamespaceAware(true);
        return f.newDocumentBuilder().parse(new File(file));
    }

    static void write(Document d, String file) throws Exception {
        Transformer t = TransformerFactory.newInstance().newTransformer();
        t.setOutputProperty("omit-xml-declaration", "yes");
        t.transform(new DOMSource(d), new StreamResult(new FileOutputStream(file)));
    }

    static WSEncryptionPart body(String how) {
        return new WSEncryptionPart("Body", SOAP, how);
    }

    static WSEncryptionPart timestamp() {
        return new WSEncryptionPart("Timestamp", WSConstants.WSU_NS, "");
    }

    /** how: words of sign, encrypt, derived, symmetric, user, digest, rsa15, sha256, gcm, first (encrypt first), issuer, ski. */
    static String secure(String how, String from, String to) throws Exception {
        Document doc = read(from);
        Set<String> w = new HashSet<>(Arrays.asList(how.split(",")));
        WSSecHeader header = new WSSecHeader(doc);
        header.insertSecurityHeader();
        WSSecTimestamp ts = new WSSecTimestamp(header);
        ts.setTimeToLive(300);
        ts.build();
        String cipher = w.contains("gcm") ? WSConstants.AES_256_GCM : WSConstants.AES_256;
        String transport = w.contains("rsa15") ? WSConstants.KEYTRANSPORT_RSA15 : WSConstants.KEYTRANSPORT_RSAOAEP;
        int reference = w.contains("issuer") ? WSConstants.ISSUER_SERIAL : w.contains("ski") ? WSConstants.SKI_KEY_IDENTIFIER : WSConstants.THUMBPRINT_IDENTIFIER;
        SecretKey key = KeyUtils.getKeyGenerator(cipher).generateKey();
        List<WSEncryptionPart> signed = new ArrayList<>(), encrypted = new ArrayList<>();
        signed.add(timestamp());
        if (w.contains("sign")) signed.add(body("Content"));
        if (w.contains("encrypt")) encrypted.add(body("Content"));
        if (w.contains("user")) {
            WSSecUsernameToken ut = new WSSecUsernameToken(header);
            ut.setPasswordType(w.contains("digest") ? WSConstants.PASSWORD_DIGEST : WSConstants.PASSWORD_TEXT);
            ut.setUserInfo("alice", "wonder<land>");
            ut.build();
            signed.add(new WSEncryptionPart("UsernameToken", WSConstants.WSSE_NS, "Element"));
            encrypted.add(new WSEncryptionPart("UsernameToken", WSConstants.WSSE_NS, "Element"));
        }
        if (w.contains("symmetric")) {
            WSSecEncryptedKey ek = new WSSecEncryptedKey(header);
            ek.setUserInfo(other);
            ek.setKeyIdentifierType(reference);
            ek.setKeyEncAlgo(transport);
            ek.prepare(crypto, key);
            KEYS.put(ek.getEncryptedKeySHA1(), key.getEncoded());
            if (w.contains("derived")) {
                WSSecDKSign s = new WSSecDKSign(header);
                s.setTokenIdentifier(ek.getId());
                s.setCustomValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
                s.setDerivedKeyLength(24);
                s.setSignatureAlgorithm(WSConstants.HMAC_SHA1);
                s.getParts().addAll(signed);
                s.build(key.getEncoded());
                if (!encrypted.isEmpty()) {
                    WSSecDKEncrypt e = new WSSecDKEncrypt(header);
                    e.setTokenIdentifier(ek.getId());
                    e.setCustomValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
                    e.setSymmetricEncAlgorithm(cipher);
                    e.setDerivedKeyLength(32);
                    e.getParts().addAll(encrypted);
                    e.build(key.getEncoded());
                }
            } else {
                WSSecSignature s = new WSSecSignature(header);
                s.setCustomTokenId(ek.getId());
                s.setCustomTokenValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
                s.setKeyIdentifierType(WSConstants.CUSTOM_SYMM_SIGNING);
                s.setSecretKey(key.getEncoded());
                s.setSignatureAlgorithm(WSConstants.HMAC_SHA1);
                s.getParts().addAll(signed);
                s.build(crypto);
                if (!encrypted.isEmpty()) {
                    WSSecEncrypt e = new WSSecEncrypt(header);
                    e.setEncKeyId(ek.getId());
                    e.setSymmetricEncAlgorithm(cipher);
                    e.setEncryptSymmKey(false);
                    e.getParts().addAll(encrypted);
                    e.build(crypto, key);
                }
            }
            ek.prependToHeader();
            write(doc, to);
            return "";
        }
        byte[] value = null;
        for (int step = 0; step < 2; step++) {
            if ((step == 0) != w.contains("first")) {
                WSSecSignature s = new WSSecSignature(header);
                s.setUserInfo(me, "secret");
                s.setKeyIdentifierType(w.contains("references") ? reference : WSConstants.BST_DIRECT_REFERENCE);
                s.setSignatureAlgorithm(w.contains("sha256") ? WSConstants.RSA_SHA256 : WSConstants.RSA_SHA1);
                s.setDigestAlgo(w.contains("sha256") ? WSConstants.SHA256 : WSConstants.SHA1);
                s.getParts().addAll(signed);
                s.build(crypto);
                value = s.getSignatureValue();
            } else if (!encrypted.isEmpty()) {
                WSSecEncrypt e = new WSSecEncrypt(header);
                e.setUserInfo(other);
                e.setKeyIdentifierType(reference);
                e.setSymmetricEncAlgorithm(cipher);
                e.setKeyEncAlgo(transport);
                e.getParts().addAll(encrypted);
                e.build(crypto, key);
            }
        }
        write(doc, to);
        return Base64.getEncoder().encodeToString(value);
    }

    static String open(String from, String to) throws Exception {
        Document doc = read(from);
        RequestData data = new RequestData();
        data.setSigVerCrypto(crypto);
        data.setDecCrypto(crypto);
        data.setAllowRSA15KeyTransportAlgorithm(true);
        data.setCallbackHandler(callbacks -> {
            for (Callback c : callbacks) {
                WSPasswordCallback own = (WSPasswordCallback) c;
                if (own.getUsage() == WSPasswordCallback.SECRET_KEY) own.setKey(KEYS.get(own.getIdentifier()));
                else own.setPassword(own.getUsage() == WSPasswordCallback.USERNAME_TOKEN ? "wonder<land>" : "secret");
            }
        });
        WSHandlerResult result = new WSSecurityEngine().processSecurityHeader(doc, data);
        StringBuilder out = new StringBuilder();
        for (WSSecurityEngineResult own : result.getResults()) {
            int action = (Integer) own.get(WSSecurityEngineResult.TAG_ACTION);
            out.append(action).append(' ');
            List<?> refs = (List<?>) own.get(WSSecurityEngineResult.TAG_DATA_REF_URIS);
            if (refs != null) for (Object ref : refs) out.append(((org.apache.wss4j.dom.WSDataRef) ref).getName().getLocalPart()).append(' ');
            if (action == WSConstants.ENCR) {
                byte[] secret = (byte[]) own.get(WSSecurityEngineResult.TAG_SECRET), sealed = (byte[]) own.get(WSSecurityEngineResult.TAG_ENCRYPTED_EPHEMERAL_KEY);
                if (secret != null && sealed != null) KEYS.put(Base64.getEncoder().encodeToString(MessageDigest.getInstance("SHA-1").digest(sealed)), secret);
            }
        }
        write(doc, to);
        return out.toString();
    }
}
