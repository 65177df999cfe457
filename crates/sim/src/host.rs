//! What is remembered of a host while a page loads: by the client, and by the host itself.

use crate::segment::FastOpen;
use crate::tls::Sessions;

/// One host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Host {
    /// The cookie that the client has.
    pub(crate) cookie: Option<FastOpen>,
    /// Sessions of TLS that the client can resume.
    pub(crate) sessions: Sessions,
    /// Fast Open requests that are pending there.
    pub(crate) pending: u32,
}
