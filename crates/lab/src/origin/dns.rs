//! A DNS server that makes clients use TCP: over UDP every answer is truncated (RFC 7766, section 5), so a client
//! asks again over TCP.
//!
//! All names have one address, the server's own. It has no zones, no records but addresses, and no DNSSEC.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;

use super::listen::{Waiting, accept, listen};
use super::log::Log;
use crate::LabError;

/// The port of DNS.
pub const DNS_PORT: u16 = 53;

/// Size of the header (RFC 1035, section 4.1.1), and its flags: response, authoritative, truncated, recursion.
const HEADER: usize = 12;
const ANSWER: u8 = 0x84;
const CUT_SHORT: u8 = 0x02;
const RECURSION: u8 = 0x80;
/// Record types (section 3.2.2; RFC 3596).
const A: u16 = 1;
const AAAA: u16 = 28;
/// A compression pointer to the name in the question (section 4.1.4).
const NAME_OF_QUESTION: [u8; 2] = [0xc0, HEADER as u8];
const A_MINUTE: [u8; 4] = 60_u32.to_be_bytes();

/// Starts the server at `address` in the running runtime.
///
/// # Errors
/// [`LabError`] when it cannot listen there.
pub fn start(address: IpAddr, log: &Arc<Log>) -> Result<(), LabError> {
    let at = SocketAddr::new(address, DNS_PORT);
    let failed = |error| LabError::system(format!("answering DNS on {at}"), error);
    let datagrams = std::net::UdpSocket::bind(at).map_err(failed)?;
    datagrams.set_nonblocking(true).map_err(failed)?;
    let datagrams = UdpSocket::from_std(datagrams).map_err(failed)?;
    tokio::spawn(async move {
        let mut datagram = vec![0; 65_536];
        loop {
            if let Ok((length, from)) = datagrams.recv_from(&mut datagram).await
                && let Some(answer) = answer(&datagram[..length], None)
            {
                let _ = datagrams.send_to(&answer, from).await;
            }
        }
    });
    let listener = listen(address, DNS_PORT, 0, Waiting::default())?;
    let log = Arc::clone(log);
    tokio::spawn(async move {
        loop {
            let (mut stream, _conversation) = log.accepted(accept(&listener, &log).await);
            tokio::spawn(async move {
                let mut question = vec![0; 65_536];
                while let Ok(length) = stream.read_u16().await {
                    let question = &mut question[..usize::from(length)];
                    if stream.read_exact(question).await.is_err() {
                        break;
                    }
                    let Some(answer) = answer(question, Some(address)) else {
                        break;
                    };
                    let whole = [&(answer.len() as u16).to_be_bytes()[..], &answer].concat();
                    if stream.write_all(&whole).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    Ok(())
}

/// The answer to a question: the name's address is `address`; if `None`, a truncated answer. Returns `None` for a
/// datagram that is not a question.
fn answer(question: &[u8], address: Option<IpAddr>) -> Option<Vec<u8>> {
    let header = question.get(..HEADER)?;
    if header[2] & 0x80 != 0 || header[4..6] != [0, 1] {
        return None;
    }
    let mut end = HEADER;
    loop {
        match *question.get(end)? {
            0 => break,
            length @ 1..=63 => end += 1 + usize::from(length),
            _ => return None,
        }
    }
    // The terminating zero of the name, type and class.
    end += 5;
    let asked = question.get(HEADER..end)?;
    let kind = u16::from_be_bytes([question[end - 4], question[end - 3]]);
    let record = match (kind, address) {
        (A, Some(IpAddr::V4(address))) => Some(address.octets().to_vec()),
        (AAAA, Some(IpAddr::V6(address))) => Some(address.octets().to_vec()),
        _ => None,
    };
    let mut answer = question[..2].to_vec();
    let cut = if address.is_none() { CUT_SHORT } else { 0 };
    // The recursion-desired flag is copied from the question.
    answer.extend([header[2] & 0x01 | ANSWER | cut, RECURSION]);
    answer.extend([0, 1, 0, u8::from(record.is_some()), 0, 0, 0, 0]);
    answer.extend_from_slice(asked);
    if let Some(data) = record {
        answer.extend(NAME_OF_QUESTION);
        answer.extend_from_slice(&question[end - 4..end]);
        answer.extend(A_MINUTE);
        answer.extend((data.len() as u16).to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn question(kind: u8) -> Vec<u8> {
        let name = b"\x03www\x07example\x00";
        [&[7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &name[..], &[0, kind, 0, 1]].concat()
    }

    #[test]
    fn over_tcp_a_name_is_at_the_servers_address_and_over_udp_the_answer_is_cut_short() {
        let address = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 3));
        let whole = answer(&question(1), Some(address)).expect("a question");
        assert_eq!(whole[..4], [7, 7, 0x85, 0x80]);
        assert_eq!(whole[6..8], [0, 1]);
        assert!(whole.ends_with(&[0, 4, 198, 19, 0, 3]));
        let cut = answer(&question(1), None).expect("a question");
        assert_eq!((cut[2] & CUT_SHORT, cut[7]), (CUT_SHORT, 0));
        assert_eq!(cut.len(), question(1).len());
        // There is no IPv6 address to return.
        assert_eq!(answer(&question(28), Some(address)).expect("a question")[7], 0);
    }

    #[test]
    fn what_is_no_question_gets_no_answer_and_no_bytes_make_it_panic() {
        let whole = question(1);
        for length in 0..whole.len() {
            assert_eq!(answer(&whole[..length], None), None, "{length}");
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0xff;
            let _ = answer(&flipped, None);
        }
    }
}
