//! Classes of addresses: the registries of special-purpose addresses, for either version of the
//! protocol.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AddressClass {
    /// Never dialled: link-local addresses, where clouds serve credentials, and addresses that no
    /// host has.
    Forbidden,
    /// Addresses of this machine and of private networks: dialled for hosts that the operator allows
    /// by name.
    Internal,
    /// Addresses of the internet.
    Public,
}

use AddressClass::{Forbidden, Internal, Public};

/// Special-purpose ranges: the first matching one counts, so single addresses stand before their
/// ranges.
const V4_RANGES: [([u8; 4], u32, AddressClass); 18] = [
    // The metadata server of a cloud stands in the range of carriers.
    ([100, 100, 100, 200], 32, Forbidden),
    ([0, 0, 0, 0], 8, Forbidden),
    ([10, 0, 0, 0], 8, Internal),
    ([100, 64, 0, 0], 10, Internal),
    ([127, 0, 0, 0], 8, Internal),
    ([168, 63, 129, 16], 32, Forbidden),
    ([169, 254, 0, 0], 16, Forbidden),
    ([172, 16, 0, 0], 12, Internal),
    ([192, 0, 0, 0], 24, Forbidden),
    ([192, 0, 2, 0], 24, Forbidden),
    ([192, 31, 196, 0], 24, Forbidden),
    ([192, 88, 99, 0], 24, Forbidden),
    ([192, 168, 0, 0], 16, Internal),
    ([198, 18, 0, 0], 15, Forbidden),
    ([198, 51, 100, 0], 24, Forbidden),
    ([203, 0, 113, 0], 24, Forbidden),
    ([224, 0, 0, 0], 4, Forbidden),
    ([240, 0, 0, 0], 4, Forbidden),
];

/// The metadata server of a cloud in the range of private networks.
const V6_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Returns the class of an address. An address that contains another address, such as
/// `::ffff:127.0.0.1`, has the class of that address.
pub(crate) fn class_of(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

fn class_of_v4(address: Ipv4Addr) -> AddressClass {
    let bits = address.to_bits();
    let is_within = |(first, length, _): &&([u8; 4], u32, AddressClass)| {
        (bits ^ u32::from_be_bytes(*first))
            .checked_shr(32 - length)
            .unwrap_or(0)
            == 0
    };
    V4_RANGES.iter().find(is_within).map_or(Public, |(_, _, class)| *class)
}

fn class_of_v6(address: Ipv6Addr) -> AddressClass {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| class_of_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => Internal,
        // IPv4-compatible, IPv4-mapped and NAT64 addresses.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        // 6to4 relays to the address inside.
        [0x2002, high, low, ..] => embedded(high, low),
        _ if address == V6_METADATA => Forbidden,
        [first, ..] if first & 0xfe00 == 0xfc00 => Internal,
        // Nothing else outside of global unicast: link-local, site-local, multicast, discard, local NAT64.
        [first, ..] if first & 0xe000 != 0x2000 => Forbidden,
        // Protocol assignments with Teredo, and documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => Forbidden,
        [0x3fff, second, ..] if second < 0x1000 => Forbidden,
        // ISATAP tunnels to the address inside.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => embedded(high, low),
        _ => Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(class: AddressClass, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(class_of(address.parse().unwrap()), class, "{address}");
        }
    }

    #[test]
    fn addresses_of_networks_that_an_operator_may_name() {
        check(
            Internal,
            &[
                "10.0.0.0",
                "10.255.255.255",
                "100.64.0.0",
                "100.127.255.255",
                "127.0.0.1",
                "127.255.255.254",
                "172.16.0.0",
                "172.31.255.255",
                "192.168.0.1",
                "::1",
                "::127.0.0.1",
                "::ffff:127.0.0.1",
                "::ffff:10.1.2.3",
                "64:ff9b::10.0.0.1",
                "64:ff9b::7f00:1",
                "2002:7f00:1::",
                "2002:c0a8:101::1",
                "fc00::1",
                "fdff:ffff::1",
                "2001:4860::5efe:10.0.0.1",
                "2001:4860::200:5efe:192.168.0.1",
            ],
        );
    }

    #[test]
    fn addresses_that_no_configuration_allows() {
        check(
            Forbidden,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "100.100.100.200",
                "168.63.129.16",
                "169.254.169.254",
                "169.254.0.1",
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.7",
                "203.0.113.9",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "::ffff:169.254.169.254",
                "::ffff:0.0.0.0",
                "64:ff9b::169.254.169.254",
                "64:ff9b:1::1",
                "::ffff:0:127.0.0.1",
                "100::1",
                "2001::1",
                "2001:0:4136:e378:8000:63bf:3fff:fdd2",
                "2001:10::1",
                "2001:20::1",
                "2001:db8::1",
                "2002:a9fe:a9fe::1",
                "3fff::1",
                "3fff:fff::1",
                "5f00::1",
                "fd00:ec2::254",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "ff02::1",
                "ff0e::1",
                "4000::1",
            ],
        );
    }

    #[test]
    fn addresses_of_the_internet() {
        check(
            Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.1",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.1",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "203.0.114.0",
                "223.255.255.255",
                "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8",
                "2001:4860:4860::8888",
                "2001:200::1",
                "2002:808:808::1",
                "2606:4700::1111",
                "3ffe::1",
                "3fff:1000::1",
            ],
        );
    }
}
