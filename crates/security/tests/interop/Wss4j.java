import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.*;
import javax.crypto.KeyGenerator;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.*;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.*;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.apache.wss4j.common.WSEncryptionPart;
import org.apache.wss4j.common.crypto.*;
import org.apache.wss4j.common.ext.WSPasswordCallback;
import org.apache.wss4j.common.token.SecurityTokenReference;
import org.apache.wss4j.common.util.KeyUtils;
import org.apache.wss4j.common.util.WSCurrentTimeSource;
import org.apache.wss4j.dom.WSConstants;
import org.apache.wss4j.dom.engine.*;
import org.apache.wss4j.dom.handler.*;
import org.apache.wss4j.dom.message.*;
import org.apache.wss4j.dom.message.token.SignatureConfirmation;
import org.w3c.dom.*;

/** WSS4J as the other side of a conversation. Each line of the input is: what, how, file in, file out; each line of the output `ok …` or `error …`. */
public class Wss4j {
    static final String SOAP = "http://schemas.xmlsoap.org/soap/envelope/";
    static final Map<String, byte[]> KEYS = new HashMap<>();
    /** What the last request that was opened had, for its answer: its signatures, and the name of the key that both sides have. */
    static final List<byte[]> signatures = new ArrayList<>();
    static String shared;
    static String me, other;
    static Crypto crypto;

    public static void main(String[] arguments) throws Exception {
        me = arguments[1];
        other = me.equals("service") ? "client" : "service";
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

    static WSSecTimestamp timestamp(WSSecHeader header, Set<String> w) throws Exception {
        WSSecTimestamp ts = new WSSecTimestamp(header);
        ts.setTimeToLive(w.contains("forever") ? 1_000_000 : 300);
        long offset = w.contains("old") || w.contains("forever") ? -3600 : w.contains("future") ? 3600 : 0;
        ts.setWsTimeSource(new WSCurrentTimeSource() {
            @Override public Instant now() { return super.now().plusSeconds(offset); }
        });
        ts.build();
        return ts;
    }

    /**
     * how: words of sign, encrypt, derived, symmetric, user, digest, rsa15, sha256, gcm, first (encrypt first), issuer, ski, references, sealed (the signature is encrypted),
     * endorsed (the signature is signed). `answer`: for the request that was opened last, with its signatures confirmed. What nobody may ask for: old, future, forever, untimed, unsigned (the timestamp), aes128,
     * tripledes, oaep256, inclusive, sha384digest, value (the key itself), hmac (a MAC whose secret is the public key of the service), other (a part, not the body),
     * twice (two signatures).
     */
    static String secure(String how, String from, String to) throws Exception {
        Document doc = read(from);
        Set<String> w = new HashSet<>(Arrays.asList(how.split(",")));
        WSSecHeader header = new WSSecHeader(doc);
        header.insertSecurityHeader();
        boolean answer = w.contains("answer");
        if (!w.contains("untimed")) timestamp(header, w);
        String cipher = w.contains("gcm") ? WSConstants.AES_256_GCM : w.contains("aes128") ? WSConstants.AES_128
            : w.contains("tripledes") ? WSConstants.TRIPLE_DES : WSConstants.AES_256;
        String transport = w.contains("rsa15") ? WSConstants.KEYTRANSPORT_RSA15 : WSConstants.KEYTRANSPORT_RSAOAEP;
        int reference = w.contains("issuer") ? WSConstants.ISSUER_SERIAL : w.contains("ski") ? WSConstants.SKI_KEY_IDENTIFIER : WSConstants.THUMBPRINT_IDENTIFIER;
        SecretKey key = KeyUtils.getKeyGenerator(cipher).generateKey();
        List<WSEncryptionPart> signed = new ArrayList<>(), encrypted = new ArrayList<>();
        if (!w.contains("untimed") && !w.contains("unsigned")) signed.add(timestamp());
        if (w.contains("sign")) signed.add(w.contains("other") ? new WSEncryptionPart("Route", "urn:h", "Content") : body("Content"));
        if (answer) {
            for (byte[] signature : signatures.isEmpty() ? Collections.<byte[]>singletonList(null) : signatures) {
                WSSecSignatureConfirmation c = new WSSecSignatureConfirmation(header);
                c.build(signature);
            }
            signed.add(new WSEncryptionPart("SignatureConfirmation", WSConstants.WSSE11_NS, "Element"));
        }
        if (w.contains("encrypt")) encrypted.add(body("Content"));
        if (w.contains("user") && !answer) {
            WSSecUsernameToken ut = new WSSecUsernameToken(header);
            ut.setPasswordType(w.contains("digest") ? WSConstants.PASSWORD_DIGEST : WSConstants.PASSWORD_TEXT);
            ut.setUserInfo("alice", "wonder<land>");
            ut.build();
            signed.add(new WSEncryptionPart("UsernameToken", WSConstants.WSSE_NS, "Element"));
            encrypted.add(new WSEncryptionPart("UsernameToken", WSConstants.WSSE_NS, "Element"));
        }
        if (w.contains("symmetric")) {
            WSSecEncryptedKey ek = answer ? null : new WSSecEncryptedKey(header);
            if (answer) {
                key = new SecretKeySpec(KEYS.get(shared), "AES");
            } else {
                ek.setUserInfo(other);
                ek.setKeyIdentifierType(reference);
                ek.setKeyEncAlgo(transport);
                ek.prepare(crypto, key);
                KEYS.put(ek.getEncryptedKeySHA1(), key.getEncoded());
            }
            if (w.contains("derived")) {
                WSSecDKSign s = new WSSecDKSign(header);
                if (answer) s.setStrElem(shared(doc));
                else s.setTokenIdentifier(ek.getId());
                s.setCustomValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
                s.setDerivedKeyLength(24);
                s.setSignatureAlgorithm(WSConstants.HMAC_SHA1);
                s.getParts().addAll(signed);
                s.build(key.getEncoded());
                if (w.contains("endorsed") && !answer) endorse(header);
                if (!encrypted.isEmpty()) {
                    WSSecDKEncrypt e = new WSSecDKEncrypt(header);
                    if (answer) e.setStrElem(shared(doc));
                    else e.setTokenIdentifier(ek.getId());
                    e.setCustomValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
                    e.setSymmetricEncAlgorithm(cipher);
                    e.setDerivedKeyLength(32);
                    e.getParts().addAll(encrypted);
                    e.build(key.getEncoded());
                }
            } else {
                WSSecSignature s = new WSSecSignature(header);
                s.setCustomTokenValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
                if (answer) {
                    s.setEncrKeySha1value(shared);
                    s.setKeyIdentifierType(WSConstants.ENCRYPTED_KEY_SHA1_IDENTIFIER);
                } else {
                    s.setCustomTokenId(ek.getId());
                    s.setKeyIdentifierType(WSConstants.CUSTOM_SYMM_SIGNING);
                }
                s.setSecretKey(key.getEncoded());
                s.setSignatureAlgorithm(WSConstants.HMAC_SHA1);
                s.getParts().addAll(signed);
                s.build(crypto);
                if (w.contains("endorsed") && !answer) endorse(header);
                if (!encrypted.isEmpty()) {
                    WSSecEncrypt e = new WSSecEncrypt(header);
                    if (answer) {
                        e.setCustomReferenceValue(shared);
                        e.setKeyIdentifierType(WSConstants.ENCRYPTED_KEY_SHA1_IDENTIFIER);
                    } else {
                        e.setEncKeyId(ek.getId());
                    }
                    e.setSymmetricEncAlgorithm(cipher);
                    e.setEncryptSymmKey(false);
                    e.getParts().addAll(encrypted);
                    e.build(crypto, key);
                }
            }
            if (!answer) ek.prependToHeader();
            write(doc, to);
            return "";
        }
        byte[] value = null;
        for (int step = 0; step < 2; step++) {
            if ((step == 0) != w.contains("first")) {
                for (int more = w.contains("twice") ? 2 : 1; more > 0 && !signed.isEmpty(); more--) {
                    WSSecSignature s = new WSSecSignature(header);
                    s.setUserInfo(me, "secret");
                    s.setKeyIdentifierType(w.contains("value") ? WSConstants.KEY_VALUE : w.contains("references") || answer ? reference : WSConstants.BST_DIRECT_REFERENCE);
                    s.setSignatureAlgorithm(w.contains("sha256") ? WSConstants.RSA_SHA256 : WSConstants.RSA_SHA1);
                    s.setDigestAlgo(w.contains("sha256") ? WSConstants.SHA256 : WSConstants.SHA1);
                    if (w.contains("inclusive")) s.setSigCanonicalization(WSConstants.C14N_OMIT_COMMENTS);
                    if (w.contains("hmac")) {
                        CryptoType type = new CryptoType(CryptoType.TYPE.ALIAS);
                        type.setAlias(other);
                        s.setSecretKey(crypto.getX509Certificates(type)[0].getPublicKey().getEncoded());
                        s.setSignatureAlgorithm(WSConstants.HMAC_SHA1);
                        SecurityTokenReference reference256 = new SecurityTokenReference(doc);
                        reference256.setKeyIdentifierThumb(crypto.getX509Certificates(type)[0]);
                        s.setSecurityTokenReference(reference256);
                        s.setKeyIdentifierType(WSConstants.CUSTOM_KEY_IDENTIFIER);
                        s.setCustomTokenId("x");
                        s.setCustomTokenValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
                    }
                    s.getParts().addAll(signed);
                    s.build(crypto);
                    value = s.getSignatureValue();
                    if (w.contains("endorsed") && !answer) endorse(header);
                }
            } else if (!encrypted.isEmpty()) {
                WSSecEncrypt e = new WSSecEncrypt(header);
                e.setUserInfo(other);
                e.setKeyIdentifierType(reference);
                e.setSymmetricEncAlgorithm(cipher);
                e.setKeyEncAlgo(transport);
                if (w.contains("oaep256")) e.setDigestAlgorithm(WSConstants.SHA256);
                if (w.contains("sealed")) encrypted.add(new WSEncryptionPart("Signature", WSConstants.SIG_NS, "Element"));
                e.getParts().addAll(encrypted);
                e.build(crypto, key);
            }
        }
        write(doc, to);
        return value == null ? "" : Base64.getEncoder().encodeToString(value);
    }

    /** A signature of the signature, with the key of this side. */
    static void endorse(WSSecHeader header) throws Exception {
        WSSecSignature s = new WSSecSignature(header);
        s.setUserInfo(me, "secret");
        s.setKeyIdentifierType(WSConstants.BST_DIRECT_REFERENCE);
        s.setSignatureAlgorithm(WSConstants.RSA_SHA1);
        s.getParts().add(new WSEncryptionPart("Signature", WSConstants.SIG_NS, "Element"));
        s.build(crypto);
    }

    /** A reference to the key of the request. */
    static Element shared(Document doc) throws Exception {
        SecurityTokenReference reference = new SecurityTokenReference(doc);
        reference.setKeyIdentifierEncKeySHA1(shared);
        reference.addTokenType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
        return reference.getElement();
    }

    static String open(String from, String to) throws Exception {
        Document doc = read(from);
        signatures.clear();
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
                if (secret != null && sealed != null) {
                    shared = Base64.getEncoder().encodeToString(MessageDigest.getInstance("SHA-1").digest(sealed));
                    KEYS.put(shared, secret);
                }
            }
            if (action == WSConstants.SIGN) signatures.add((byte[]) own.get(WSSecurityEngineResult.TAG_SIGNATURE_VALUE));
            if (action == WSConstants.SC) {
                byte[] confirmed = ((SignatureConfirmation) own.get(WSSecurityEngineResult.TAG_SIGNATURE_CONFIRMATION)).getSignatureValue();
                out.append("confirmed=").append(Base64.getEncoder().encodeToString(confirmed)).append(' ');
            }
        }
        write(doc, to);
        return out.toString();
    }
}
