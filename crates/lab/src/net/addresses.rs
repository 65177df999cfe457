//! The addresses in the lab.
//!
//! 198.18.0.0/15 and `2001:2::/48` are reserved for benchmarks of network devices (RFC 2544, appendix C.2.2; RFC
//! 5180, section 8), so no page's recorded address can collide with them. Each host of a page gets its own address,
//! because names resolve to addresses, and a TFO cookie belongs to one address (RFC 7413, section 4.1.3).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use firstflight_page::Page;
use firstflight_path::IpVersion;

/// The client's IPv4 address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The IPv4 address of the lab's own services: echo, source and sink.
pub const SERVICES: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);
/// Number of the first host within the origins' network.
const FIRST_HOST: u16 = 1;
/// Number of the lab's own services within the origins' network.
const SERVICES_NUMBER: u16 = 65_534;

/// The addresses of a lab, except those of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Their IP version.
    pub ip: IpVersion,
    /// The client.
    pub client: IpAddr,
    /// An earlier address of the client, or of its NAT.
    pub former: IpAddr,
    /// The servers' end of the wire.
    pub(super) servers_tun: IpAddr,
    /// First address of the origins' network.
    pub(super) origins: IpAddr,
    /// Prefix length of that network, and of the networks at both ends of the wire.
    pub(super) prefix: u8,
}

impl Block {
    /// The addresses for an IP version.
    pub const fn of(ip: IpVersion) -> Self {
        match ip {
            IpVersion::V4 => Self {
                ip,
                client: IpAddr::V4(CLIENT),
                former: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 3)),
                servers_tun: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)),
                origins: IpAddr::V4(Ipv4Addr::new(198, 19, 0, 0)),
                prefix: 16,
            },
            IpVersion::V6 => Self {
                ip,
                client: IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1)),
                former: IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 3)),
                servers_tun: IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 2)),
                origins: IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 0)),
                prefix: 64,
            },
        }
    }

    /// The lab's own services: echo, source and sink.
    pub fn services(self) -> IpAddr {
        self.origin(SERVICES_NUMBER)
    }

    /// Address `number` of the origins' network.
    pub fn origin(self, number: u16) -> IpAddr {
        beyond(self.origins, number)
    }

    /// An address of the client's network: `number` after the client's own.
    pub fn neighbour(self, number: u16) -> IpAddr {
        beyond(self.client, number)
    }
}

/// The addresses of a page's hosts.
#[derive(Debug, Clone)]
pub struct AddressPlan {
    /// The other addresses.
    pub block: Block,
    hosts: Vec<String>,
    by_host: HashMap<String, u16>,
}

impl AddressPlan {
    /// Numbers the hosts of `pages` in order of first use.
    pub fn new<'a>(ip: IpVersion, pages: impl IntoIterator<Item = &'a Page>) -> Self {
        let mut plan = Self {
            block: Block::of(ip),
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
    pub fn hosts(&self) -> impl Iterator<Item = (&str, IpAddr)> {
        self.hosts
            .iter()
            .enumerate()
            .map(|(index, host)| (host.as_str(), self.of_host(index as u16)))
    }

    /// The address of `host`, if the page names it.
    pub fn address(&self, host: &str) -> Option<IpAddr> {
        self.by_host.get(host).map(|index| self.of_host(*index))
    }

    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there is no host.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The index of the host at `address`. The lab's services count as one more host.
    pub fn index(hosts: usize, address: IpAddr) -> usize {
        let number = usize::from(low_bits(address) as u16);
        number.wrapping_sub(usize::from(FIRST_HOST)).min(hosts)
    }

    fn of_host(&self, index: u16) -> IpAddr {
        self.block.origin(FIRST_HOST + index)
    }
}

fn beyond(first: IpAddr, number: u16) -> IpAddr {
    match first {
        IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + u32::from(number)).into(),
        IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() + u128::from(number)).into(),
    }
}

/// Whether an address is an origin's.
pub fn is_origin(address: IpAddr) -> bool {
    match (
        address,
        Block::of(IpVersion::V4).origins,
        Block::of(IpVersion::V6).origins,
    ) {
        (IpAddr::V4(address), IpAddr::V4(origins), _) => address.octets()[..2] == origins.octets()[..2],
        (IpAddr::V6(address), _, IpAddr::V6(origins)) => address.segments()[..4] == origins.segments()[..4],
        _ => false,
    }
}

/// The part of an address in which the lab's addresses of a version differ.
pub fn low_bits(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_and_services_are_told_from_both_ends_of_the_wire() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let block = Block::of(ip);
            assert!(
                [block.origin(1), block.origin(400), block.services()]
                    .into_iter()
                    .all(is_origin)
            );
            assert!(
                ![block.client, block.former, block.servers_tun]
                    .into_iter()
                    .any(is_origin)
            );
            assert_eq!(AddressPlan::index(9, block.origin(3)), 2);
            assert_eq!(AddressPlan::index(9, block.services()), 9);
        }
        assert_eq!(Block::of(IpVersion::V4).services(), SERVICES);
    }
}
