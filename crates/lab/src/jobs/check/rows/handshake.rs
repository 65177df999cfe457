//! Unusual handshakes, as in packetdrill's tests for Linux.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Level, Row, Trial};
use crate::jobs::check::client::{Answer, COOKIE, Call, ClientStage, REQUEST, SERVER};
use crate::jobs::check::finding::{Finding, Stop, yes};
use crate::jobs::check::packet::{Kind, Packet};
use crate::jobs::check::wire::SOON;
use crate::packet::mss;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "partial-ack",
        level: Level::Linux,
        section: "4.2.2",
        behaviour: "Data of the SYN that a SYN-ACK leaves out goes again in the first ACK, and no more.",
        done: "1,000 bytes in the SYN; a SYN-ACK that takes 400 of them.",
        trial: Trial::Client { run: partial_ack },
    },
    Row {
        id: "mss-reduction",
        level: Level::Linux,
        section: "",
        behaviour: "Data of a SYN that is sent again keeps to the segment size that the SYN-ACK announces.",
        done: "1,400 bytes in the SYN; a SYN-ACK that takes none and announces 600 bytes.",
        trial: Trial::Client { run: mss_reduction },
    },
    Row {
        id: "syn-ack-data",
        level: Level::Described,
        section: "4.2.2",
        behaviour: "Data in a SYN-ACK is taken.",
        done: "A SYN-ACK that takes the request and carries the answer.",
        trial: Trial::Client { run: syn_ack_data },
    },
    Row {
        id: "syn-ack-fin",
        level: Level::Linux,
        section: "",
        behaviour: "Data and the end of it in a SYN-ACK are taken.",
        done: "A SYN-ACK that takes the request, carries the answer, and says that it is all.",
        trial: Trial::Client { run: syn_ack_fin },
    },
    Row {
        id: "simultaneous-open",
        level: Level::Described,
        section: "4.2.2",
        behaviour: "Two sides that open at once come together, and the data of the SYN counts.",
        done: "A SYN with data is met by a SYN; then a SYN-ACK that takes the data.",
        trial: Trial::Client {
            run: simultaneous_open,
        },
    },
    Row {
        id: "zero-payload-client",
        level: Level::Linux,
        section: "",
        behaviour: "With a cookie and nothing to send the SYN carries the cookie, and the connection opens.",
        done: "MSG_FASTOPEN with no bytes to a server whose cookie is cached.",
        trial: Trial::Client { run: zero_payload },
    },
];

fn partial_ack(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let data = numbered(1_000);
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, &data)?;
    let part = Answer {
        taken: 400,
        ..Answer::plain()
    };
    stage.answer(&call.syn, &part)?;
    let first = stage.first_of(&call)?;
    let from = first.sequence.wrapping_sub(call.syn.sequence.wrapping_add(1));
    let seen = format!(
        "The first ACK carries {} bytes, from byte {from} on.",
        first.payload.len()
    );
    Ok(Finding::judged(from == 400 && first.payload == data[400..], seen))
}

fn mss_reduction(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let data = numbered(1_400);
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, &data)?;
    let carried = call.syn.payload.len();
    let refused = Answer {
        options: mss(600),
        ..Answer::default()
    };
    stage.answer(&call.syn, &refused)?;
    let (again, segments) = stage.data_of(&call);
    let source = call.syn.source;
    let sent = stage
        .wire
        .kernels()
        .filter(|packet| packet.source == source && !packet.flags.syn);
    let longest = sent.map(|packet| packet.payload.len()).max().unwrap_or_default();
    let seen = format!(
        "{carried} bytes in the SYN; {} bytes again in {segments} segments of at most {longest}.",
        again.len()
    );
    Ok(Finding::judged(again == data && longest <= 600, seen))
}

fn syn_ack_data(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let (acknowledged, read, _) = answered_at_once(stage, false)?;
    let seen = format!(
        "The ACK covers the answer: {}; the application read it: {}.",
        yes(acknowledged),
        yes(read)
    );
    Ok(Finding::judged(acknowledged && read, seen))
}

fn syn_ack_fin(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let (acknowledged, read, ended) = answered_at_once(stage, true)?;
    let seen = format!(
        "The ACK covers the answer and its end: {}; the application read the answer: {}, and its end: {}.",
        yes(acknowledged),
        yes(read),
        yes(ended)
    );
    Ok(Finding::judged(acknowledged && read && ended, seen))
}

/// Whether an answer in the SYN-ACK is acknowledged, whether it is read, and whether its end is seen.
fn answered_at_once(stage: &mut ClientStage, fin: bool) -> Result<(bool, bool, bool), Stop> {
    const HELLO: &[u8] = b"hello";
    stage.warm(SERVER)?;
    let mut call = stage.call(SERVER, REQUEST)?;
    let whole = Answer {
        taken: REQUEST.len() as u32,
        data: HELLO.to_vec(),
        fin,
        ..Answer::plain()
    };
    let answered = stage.answer(&call.syn, &whole)?;
    let source = call.syn.source;
    let covers = |packet: &Packet| packet.source == source && packet.acknowledgment == answered.end();
    let acknowledged = stage.wire.wait(SOON, covers).is_some();
    let mut read = vec![0; HELLO.len()];
    let is_read = read_soon(&mut call, &mut read) == HELLO.len() && read == HELLO;
    let has_ended = fin && matches!(call.socket.read(&mut [0]), Ok(0));
    Ok((acknowledged, is_read, has_ended))
}

fn simultaneous_open(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let mut call = stage.call(SERVER, REQUEST)?;
    let mut theirs = call.syn.reply(700_000, 0);
    theirs.flags.ack = false;
    theirs.flags.syn = true;
    theirs.options = mss(1_460);
    stage.wire.send(&theirs)?;
    let source = call.syn.source;
    let met = stage.wire.wait(SOON, |packet| {
        packet.source == source && packet.kind() == Kind::SynAck
    });
    let mut taken = call.syn.reply(theirs.sequence, call.syn.end());
    taken.flags.syn = true;
    taken.options = mss(1_460);
    stage.wire.send(&taken)?;
    let mut hello = call.syn.reply(theirs.end(), call.syn.end());
    hello.payload = b"hello".to_vec();
    stage.wire.send(&hello)?;
    let covers = |packet: &Packet| packet.source == source && packet.acknowledgment == hello.end();
    let acknowledged = stage.wire.wait(SOON, covers).is_some();
    let mut read = [0; 5];
    let is_read = read_soon(&mut call, &mut read) == 5;
    let (_, again) = stage.data_of(&call);
    let seen = format!(
        "The SYN was answered by a SYN-ACK: {}; data after the handshake was acknowledged: {}, and read: \
         {}; segments \
         that carried the request again: {again}.",
        yes(met.is_some()),
        yes(acknowledged),
        yes(is_read),
    );
    Ok(Finding::judged(
        met.is_some() && acknowledged && is_read && again == 0,
        seen,
    ))
}

fn zero_payload(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, &[])?;
    let answered = stage.answer(&call.syn, &Answer::plain())?;
    let first = stage.first_of(&call)?;
    let opened = first.acknowledgment == answered.end() && !first.flags.rst;
    let has_cookie = call.syn.cookie() == Some(&COOKIE);
    let seen = format!(
        "The SYN has the cookie: {}; bytes of data in it: {}; the connection opened: {}.",
        yes(has_cookie),
        call.syn.payload.len(),
        yes(opened)
    );
    Ok(Finding::judged(
        has_cookie && opened && call.syn.payload.is_empty(),
        seen,
    ))
}

/// Bytes that depend on their position.
fn numbered(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

/// Reads until `buffer` is full, or nothing more comes soon. Returns the number of bytes.
fn read_soon(call: &mut Call, buffer: &mut [u8]) -> usize {
    let deadline = Instant::now() + SOON;
    let mut filled = 0;
    while filled < buffer.len() && Instant::now() < deadline {
        match TcpStream::read(&mut call.socket, &mut buffer[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => break,
        }
    }
    filled
}
