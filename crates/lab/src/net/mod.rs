//! The lab's network: two namespaces, a TUN device in each, addresses, sysctls and names.

mod addresses;
mod links;
mod names;
mod socket;
mod sysctl;
mod transport;
mod udp;

pub use addresses::{AddressPlan, Block, CLIENT, SERVICES, is_origin, low_bits};
pub use links::{
    DEVICE, Side, bring_loopback_up, bring_veth_up, change_transport, make_veth_pair, move_client,
    set_up_wire,
};
pub use names::install_names;
pub use socket::{option_bytes, set_tcp_option};
pub use sysctl::{set_client_sysctls, set_server_sysctls, set_sysctl, use_ecn, use_ipv6};
pub use transport::Transport;
pub use udp::{receive_datagram, receive_ecn, send_datagram};
