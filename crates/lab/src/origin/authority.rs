//! The lab's certificate authority. Each lab makes its own, and it ends with the lab.
//!
//! It has one key, which all servers use too. It needs no more: clients that trust it must accept its servers, at
//! no cost. It signs a host's certificate when a client first asks for it. To match the size of public chains, a
//! certificate is padded to that many bytes.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use base64::Engine;
use firstflight_load::MAX_EARLY_DATA;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{RootCertStore, ServerConfig};

use crate::LabError;

/// An unknown extension (RFC 5280, section 4.2) under a number reserved for examples (RFC 5612), and the bytes
/// around its value in a certificate of some thousand bytes.
const PADDING: &[u64] = &[1, 3, 6, 1, 4, 1, 32_473, 1];
const PADDING_AROUND: usize = 24;

/// Tolerance for clocks that are wrong, or that a program under test sets back.
const A_WHILE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A certificate authority for one lab.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
    signing_key: Arc<dyn SigningKey>,
    /// Size of its servers' certificates; `None` for the smallest.
    certificate_bytes: Option<u32>,
    provider: Arc<CryptoProvider>,
}

impl Authority {
    /// Makes an authority.
    ///
    /// # Errors
    /// [`LabError`] when no random numbers are available.
    pub fn new() -> Result<Self, LabError> {
        let failed =
            |error: &dyn std::fmt::Display| LabError::system("making the lab's certificate authority", error);
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(|error| failed(&error))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signing_key = provider
            .key_provider
            .load_private_key(private)
            .map_err(|error| failed(&error))?;
        let mut parameters = parameters("firstflight throwaway authority");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = parameters.self_signed(&key).map_err(|error| failed(&error))?;
        Ok(Self {
            issuer: Issuer::new(parameters, key),
            certificate,
            signing_key,
            certificate_bytes: None,
            provider,
        })
    }

    /// The same authority, with certificates of `bytes` bytes, like the chain of a public authority.
    #[must_use]
    pub fn with_certificates_of(self, bytes: Option<u32>) -> Self {
        Self {
            certificate_bytes: bytes,
            ..self
        }
    }

    /// Writes its certificate (PEM) to a file, for clients to trust. A line before it holds [`Self::spki_sha256`];
    /// readers of PEM skip it (RFC 7468, section 2).
    ///
    /// # Errors
    /// [`LabError`] naming the file.
    pub fn write(&self, file: &Path) -> Result<(), LabError> {
        fs::write(file, self.pem()).map_err(|error| LabError::unwritable(file, error))
    }

    fn pem(&self) -> String {
        format!("SPKI-SHA256: {}\n{}", self.spki_sha256(), self.certificate.pem())
    }

    /// The SHA-256 of its public key, which its servers use too, in Base64. Chromium's
    /// `--ignore-certificate-errors-spki-list` takes it.
    pub fn spki_sha256(&self) -> String {
        let key = self.issuer.key().subject_public_key_info();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &key);
        base64::engine::general_purpose::STANDARD.encode(digest)
    }

    /// The root store for clients that trust it.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        // A certificate that was just signed is valid.
        let _ = roots.add(self.certificate.der().clone());
        roots
    }

    /// The TLS configuration of the server of `host`, with these application protocols (ALPN). If
    /// `takes_early_data`, the server accepts early data and answers it before the handshake is done.
    ///
    /// # Errors
    /// [`LabError`] when the library has no version of TLS to speak.
    pub fn server(
        self: &Arc<Self>,
        host: &str,
        protocols: &[&[u8]],
        takes_early_data: bool,
    ) -> Result<ServerConfig, LabError> {
        let certificates = HostCertificate {
            authority: Arc::clone(self),
            host: host.to_owned(),
            made: OnceLock::new(),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| LabError::system("setting up TLS", error))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certificates));
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        if takes_early_data {
            config.max_early_data_size = MAX_EARLY_DATA as u32;
            config.send_half_rtt_data = true;
        }
        Ok(config)
    }

    /// The same for QUIC, which limits early data by its flow control (RFC 9001, section 4.6.1).
    ///
    /// # Errors
    /// [`LabError`] when the library has no version of TLS to speak.
    pub fn quic_server(
        self: &Arc<Self>,
        host: &str,
        protocol: &[u8],
        takes_early_data: bool,
    ) -> Result<ServerConfig, LabError> {
        let mut config = self.server(host, &[protocol], takes_early_data)?;
        if takes_early_data {
            config.max_early_data_size = u32::MAX;
        }
        Ok(config)
    }

    fn sign(&self, host: &str) -> Result<CertificateDer<'static>, rcgen::Error> {
        let mut parameters = parameters("firstflight server");
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        parameters.subject_alt_names = CertificateParams::new([name])?.subject_alt_names;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // rcgen derives the number from the key, which all hosts share. Firefox refuses two certificates with one
        // number.
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, host.as_bytes());
        parameters.serial_number = Some(serial_number(digest.as_ref()));
        parameters.use_authority_key_identifier_extension = true;
        let certificate = parameters.signed_by(self.issuer.key(), &self.issuer)?;
        let bytes = certificate.der().len();
        let Some(missing) = self
            .certificate_bytes
            .and_then(|asked| (asked as usize).checked_sub(bytes + PADDING_AROUND))
        else {
            return Ok(certificate.der().clone());
        };
        parameters.custom_extensions = vec![CustomExtension::from_oid_content(PADDING, vec![0; missing])];
        let certificate = parameters.signed_by(self.issuer.key(), &self.issuer)?;
        Ok(certificate.der().clone())
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// The certificate of one host, signed when a client first asks for it.
#[derive(Debug)]
struct HostCertificate {
    authority: Arc<Authority>,
    host: String,
    made: OnceLock<Option<Arc<CertifiedKey>>>,
}

impl ResolvesServerCert for HostCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let make = || {
            let certificate = self.authority.sign(&self.host).ok()?;
            let key = Arc::clone(&self.authority.signing_key);
            Some(Arc::new(CertifiedKey::new(vec![certificate], key)))
        };
        self.made.get_or_init(make).clone()
    }
}

/// A serial number of 20 bytes: positive, and of this length whatever the digest (RFC 5280, section 4.1.2.2).
fn serial_number(digest: &[u8]) -> SerialNumber {
    let mut bytes: Vec<u8> = digest.iter().copied().take(20).collect();
    bytes[0] = bytes[0] & 0x3f | 0x40;
    SerialNumber::from(bytes)
}

fn parameters(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.not_before = (SystemTime::now() - A_WHILE).into();
    parameters.not_after = (SystemTime::now() + A_WHILE).into();
    parameters
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, ServerConnection};

    use super::*;

    /// Runs a handshake between a client that trusts `trusted` and a server of `host`.
    fn handshake(
        authority: &Arc<Authority>,
        trusted: &Authority,
        host: &str,
    ) -> Result<Vec<u8>, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&authority.provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(trusted.roots())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name)?;
        let config = authority.server(host, &[b"h2", b"http/1.1"], false).unwrap();
        let mut server = ServerConnection::new(Arc::new(config))?;
        while client.is_handshaking() || server.is_handshaking() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets()?;
            wire.clear();
            server.write_tls(&mut wire).unwrap();
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        Ok(client.alpn_protocol().unwrap_or_default().to_vec())
    }

    #[test]
    fn a_client_that_trusts_it_accepts_every_host() {
        let authority = Arc::new(Authority::new().unwrap());
        for host in ["a.test", "under_score.a.test", "198.19.0.1", &"a".repeat(63)] {
            assert_eq!(handshake(&authority, &authority, host).unwrap(), b"h2", "{host}");
        }
    }

    #[test]
    fn every_certificate_has_a_serial_number_of_its_own_and_the_same_in_every_lab() {
        let serial = |host: &str| {
            let authority = Authority::new().unwrap();
            let signed = authority.sign(host).unwrap();
            // The number follows the lengths of the certificate and its body, and the version.
            let at = signed.windows(2).position(|bytes| bytes == [0x02, 20]).unwrap();
            signed[at + 2..at + 22].to_vec()
        };
        assert_ne!(serial("a.test"), serial("b.test"));
        assert_eq!(serial("a.test"), serial("a.test"));
    }

    #[test]
    fn nobody_else_is_believed() {
        let (one, other) = (Arc::new(Authority::new().unwrap()), Authority::new().unwrap());
        assert!(handshake(&one, &other, "a.test").is_err());
        assert_ne!(one.spki_sha256(), other.spki_sha256());
        assert_eq!(one.spki_sha256().len(), 44);
    }
}
