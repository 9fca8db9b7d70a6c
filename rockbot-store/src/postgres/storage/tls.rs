//! Encrypted connections to the server.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::PostgresError;

/// Returns the connector to a server whose certificate an authority of `ca_file` signed, or an
/// authority that this machine trusts.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, PostgresError> {
    let unusable = |reason: String| PostgresError::Authorities { reason };
    let authorities = match ca_file {
        Some(file) => of_file(file).map_err(|error| unusable(format!("`{}`: {error}", file.display())))?,
        None => of_machine(),
    };
    if authorities.is_empty() {
        return Err(unusable("there is none: name a file with `CaFile`".to_owned()));
    }
    // Named, since a program may have several.
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| unusable(error.to_string()))?;
    let config = builder.with_root_certificates(authorities).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn of_file(file: &Path) -> Result<RootCertStore, Box<dyn std::error::Error>> {
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file)? {
        authorities.add(certificate?)?;
    }
    Ok(authorities)
}

fn of_machine() -> RootCertStore {
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    authorities
}
