//! Who has which address.
//!
//! 198.18.0.0/15 is reserved for benchmarks of network devices (RFC 2544, appendix C.2.2), so no page's
//! recorded address can collide with it. Each host of a page gets its own address: names resolve to
//! addresses, and a TFO cookie belongs to one (RFC 7413, section 4.1.3).

use std::collections::HashMap;
use std::net::Ipv4Addr;

use firstflight_page::Page;

/// The client's address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// An address that the client, or its NAT, had before.
pub const FORMER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 3);
/// The servers' own end of the wire.
pub(super) const SERVERS_TUN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// First address of the origins' network, 198.19.0.0/16.
pub(super) const ORIGINS: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 0);
/// The lab's own services: echo, source and sink.
pub const SERVICES: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);
/// Number of the first host within the origins' network.
const FIRST_HOST: u16 = 1;

/// The addresses of a page's hosts.
#[derive(Debug, Clone)]
pub struct AddressPlan {
    hosts: Vec<String>,
    by_host: HashMap<String, u16>,
}

impl AddressPlan {
    /// Numbers the hosts of `pages` in order of first use.
    pub fn new<'a>(pages: impl IntoIterator<Item = &'a Page>) -> Self {
        let mut plan = Self {
            hosts: Vec::new(),
            by_host: HashMap::new(),
        };
        for origin in pages.into_iter().flat_map(Page::origins) {
            if !plan.by_host.contains_key(&origin.host) {
                plan.by_host.insert(origin.host.clone(), plan.hosts.len() as u16);
                plan.hosts.push(origin.host);
            }
        }
        plan
    }

    /// Host names with their addresses, in order of first use.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, Ipv4Addr)> {
        self.hosts
            .iter()
            .enumerate()
            .map(|(index, host)| (host.as_str(), address(index as u16)))
    }

    /// The address of `host`, if the page names it.
    pub fn address(&self, host: &str) -> Option<Ipv4Addr> {
        self.by_host.get(host).map(|index| address(*index))
    }

    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there is no host.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The index of the host behind `address`; the lab's services count as one more.
    pub fn index(hosts: usize, address: Ipv4Addr) -> usize {
        let number = usize::from(u16::from_be_bytes([address.octets()[2], address.octets()[3]]));
        number.wrapping_sub(usize::from(FIRST_HOST)).min(hosts)
    }
}

/// Whether an address is an origin's.
pub fn is_origin(address: Ipv4Addr) -> bool {
    address.octets()[..2] == ORIGINS.octets()[..2]
}

fn address(index: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(ORIGINS.to_bits() + u32::from(FIRST_HOST + index))
}
