//! `tcp_fastopen_blackhole_timeout_sec`: if Linux suspects that a path drops what follows the SYN, it turns the
//! client's Fast Open off for this time (`net/ipv4/tcp_fastopen.c`, `tcp_fastopen_active_disable`).
//!
//! The default is 0 (never) since Linux 5.14. Setting and state belong to a network namespace; the time holds for
//! every server. Left out: three lost SYNs in a row, which raise the same suspicion after seven seconds.

use std::fs;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use super::{Level, Row, Trial};
use crate::LabError;
use crate::jobs::check::client::{Answer, COOKIE, Call, ClientStage, OTHER, Peer, REQUEST, SERVER};
use crate::jobs::check::finding::{Finding, Stop, yes};
use crate::jobs::check::packet::Packet;
use crate::jobs::check::rows::request::option_of;
use crate::jobs::check::wire::SOON;
use crate::net::set_sysctl;
use crate::witness::tcp_ext;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "blackhole-default",
        level: Level::Linux,
        section: "",
        behaviour: "With tcp_fastopen_blackhole_timeout_sec 0, the default, a suspected black hole does not \
            turn Fast Open off.",
        done: "A reset out of order before any data from the server; then another connection.",
        trial: Trial::Client { run: default },
    },
    Row {
        id: "blackhole-reset",
        level: Level::Linux,
        section: "",
        behaviour: "A reset out of order before any data turns the client's Fast Open off for every server, \
            for tcp_fastopen_blackhole_timeout_sec.",
        done: "1 s; such a reset after data in a SYN was taken; connections to that server and another, at \
            once and after the time.",
        trial: Trial::Client { run: reset },
    },
    Row {
        id: "blackhole-fin",
        level: Level::Linux,
        section: "",
        behaviour: "A FIN out of order before any data does the same.",
        done: "1 s; such a FIN after data in a SYN was taken; connections to that server and another, at \
            once and after the time.",
        trial: Trial::Client { run: fin },
    },
    Row {
        id: "blackhole-timeouts",
        level: Level::Linux,
        section: "",
        behaviour: "Three timeouts in a row of a connection with Fast Open do the same.",
        done: "1 s; data in a SYN is taken, what follows is not acknowledged; connections to that server and \
            another, at once and after the time.",
        trial: Trial::Client { run: timeouts },
    },
    Row {
        id: "blackhole-doubling",
        level: Level::Linux,
        section: "",
        behaviour: "The second suspicion turns Fast Open off for twice the time.",
        done: "1 s; a reset out of order; another one after the time; connections 1.3 s and 2 s later.",
        trial: Trial::Client { run: doubling },
    },
    Row {
        id: "blackhole-forgiven",
        level: Level::Linux,
        section: "",
        behaviour: "A connection with Fast Open that gets data makes the next suspicion count as the first.",
        done: "1 s; a reset out of order; after the time a connection that is answered; another reset; a \
            connection 1 s later.",
        trial: Trial::Client { run: forgiven },
    },
    Row {
        id: "blackhole-lost-syn",
        level: Level::Linux,
        section: "",
        behaviour: "One lost SYN with data raises no suspicion: the setting does not do what R5 and R6 ask for.",
        done: "1 s; a SYN with data is lost, the bare one after it answered; then another connection.",
        trial: Trial::Client { run: lost_syn },
    },
];

const SETTING: &str = "tcp_fastopen_blackhole_timeout_sec";
const TIME: Duration = Duration::from_secs(1);
/// Tolerance for the kernel's tick and the row's own timing.
const ROOM: Duration = Duration::from_millis(50);
/// The gap before a segment that is out of order, bytes.
const GAP: u32 = 500;

fn default(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let path = format!("/proc/sys/net/ipv4/{SETTING}");
    let value = fs::read_to_string(&path);
    let value = value.map_err(|error| LabError::system(format!("reading {path}"), error))?;
    stage.warm(SERVER)?;
    reset_out_of_order(stage)?;
    let counted = suspicions()?;
    let syn = try_again(stage, SERVER)?;
    let seen = format!(
        "The setting is {}; TCPFastOpenBlackhole {counted}; the next SYN {} and carries {} bytes of data.",
        value.trim(),
        option_of(&syn),
        syn.payload.len()
    );
    Ok(Finding::judged(
        value.trim() == "0" && counted == 0 && is_open(&syn),
        seen,
    ))
}

fn reset(stage: &mut ClientStage) -> Result<Finding, Stop> {
    suspected_by(stage, reset_out_of_order)
}

fn fin(stage: &mut ClientStage) -> Result<Finding, Stop> {
    suspected_by(stage, fin_out_of_order)
}

fn timeouts(stage: &mut ClientStage) -> Result<Finding, Stop> {
    suspected_by(stage, three_timeouts)
}

/// Whether the event `happens` turns Fast Open off for all servers, and only for the set time.
fn suspected_by(
    stage: &mut ClientStage,
    happens: fn(&mut ClientStage) -> Result<Instant, Stop>,
) -> Result<Finding, Stop> {
    turn_on(stage)?;
    let begun = happens(stage)?;
    let counted = suspicions()?;
    let here = try_again(stage, SERVER)?;
    let elsewhere = try_again(stage, OTHER)?;
    in_time(begun, TIME)?;
    wait_until(begun + TIME + ROOM);
    let after = try_again(stage, SERVER)?;
    let seen = format!(
        "TCPFastOpenBlackhole {counted}. The next SYN {}, to another server it {}; after {:.1} s it {} and \
         carries {} bytes of data.",
        option_of(&here),
        option_of(&elsewhere),
        begun.elapsed().as_secs_f64(),
        option_of(&after),
        after.payload.len()
    );
    let holds = counted == 1 && is_off(&here) && is_off(&elsewhere) && is_open(&after);
    Ok(Finding::judged(holds, seen))
}

fn doubling(stage: &mut ClientStage) -> Result<Finding, Stop> {
    turn_on(stage)?;
    let first = reset_out_of_order(stage)?;
    wait_until(first + TIME + ROOM);
    let second = reset_out_of_order(stage)?;
    wait_until(second + TIME.mul_f64(1.3));
    let within = try_again(stage, SERVER)?;
    in_time(second, 2 * TIME)?;
    wait_until(second + 2 * TIME + ROOM);
    let after = try_again(stage, SERVER)?;
    let counted = suspicions()?;
    let seen = format!(
        "TCPFastOpenBlackhole {counted}. 1.3 s after the second the SYN {}; after 2 s it {} and carries {} \
         bytes of data.",
        option_of(&within),
        option_of(&after),
        after.payload.len()
    );
    Ok(Finding::judged(
        counted == 2 && is_off(&within) && is_open(&after),
        seen,
    ))
}

fn forgiven(stage: &mut ClientStage) -> Result<Finding, Stop> {
    turn_on(stage)?;
    let first = reset_out_of_order(stage)?;
    wait_until(first + TIME + ROOM);
    let answered = get_answer(stage)?;
    let second = reset_out_of_order(stage)?;
    let within = try_again(stage, SERVER)?;
    in_time(second, TIME)?;
    wait_until(second + TIME + ROOM);
    let after = try_again(stage, SERVER)?;
    let counted = suspicions()?;
    let seen = format!(
        "The connection between was answered: {}; TCPFastOpenBlackhole {counted}. After the second the SYN \
         {}; 1 s later it {} and carries {} bytes of data.",
        yes(answered),
        option_of(&within),
        option_of(&after),
        after.payload.len()
    );
    let holds = answered && counted == 2 && is_off(&within) && is_open(&after);
    Ok(Finding::judged(holds, seen))
}

fn lost_syn(stage: &mut ClientStage) -> Result<Finding, Stop> {
    turn_on(stage)?;
    let call = stage.call(SERVER, REQUEST)?;
    let again = stage.again(&call)?;
    let answered = stage.answer(&again.syn, &Answer::plain())?;
    stage.first_of(&call)?;
    stage.reset(call, &answered)?;
    let counted = suspicions()?;
    let syn = try_again(stage, SERVER)?;
    let seen = format!(
        "TCPFastOpenBlackhole {counted}; the next SYN {} and carries {} bytes of data.",
        option_of(&syn),
        syn.payload.len()
    );
    Ok(Finding::judged(counted == 0 && is_open(&syn), seen))
}

/// Sets the time to 1 s, and gets cookies of two servers.
fn turn_on(stage: &mut ClientStage) -> Result<(), Stop> {
    set_sysctl(SETTING, &TIME.as_secs().to_string())?;
    stage.warm(SERVER)?;
    stage.warm(OTHER)?;
    Ok(())
}

/// A connection whose SYN data is acknowledged, and which an out-of-order segment then resets. Returns when the
/// suspicion began.
fn reset_out_of_order(stage: &mut ClientStage) -> Result<Instant, Stop> {
    let (call, answered) = taken(stage)?;
    let mut odd = call.syn.reply(answered.end().wrapping_add(GAP), call.syn.end());
    odd.flags.rst = true;
    let begun = Instant::now();
    stage.wire.send(&odd)?;
    let source = call.syn.source;
    stage
        .wire
        .expect("challenge ACK (RFC 5961, section 3.2)", SOON, |packet| {
            packet.source == source
        })?;
    stage.reset(call, &answered)?;
    Ok(begun)
}

/// The same with a FIN behind missing data. The kernel checks when the connection ends.
fn fin_out_of_order(stage: &mut ClientStage) -> Result<Instant, Stop> {
    let (call, answered) = taken(stage)?;
    let mut odd = call.syn.reply(answered.end().wrapping_add(GAP), call.syn.end());
    odd.flags.fin = true;
    stage.wire.send(&odd)?;
    let source = call.syn.source;
    stage
        .wire
        .expect("ACK of what is missing", SOON, |packet| packet.source == source)?;
    let begun = Instant::now();
    stage.reset(call, &answered)?;
    Ok(begun)
}

/// The same with data that is not acknowledged, and sent again three times.
fn three_timeouts(stage: &mut ClientStage) -> Result<Instant, Stop> {
    let (call, answered) = taken(stage)?;
    (&call.socket)
        .write_all(REQUEST)
        .map_err(|error| LabError::system("writing to a connection", error))?;
    let deadline = Instant::now() + SOON;
    let source = call.syn.source;
    while suspicions()? == 0 {
        if Instant::now() > deadline {
            return Ok(deadline);
        }
        stage
            .wire
            .wait(Duration::from_millis(5), |packet| packet.source == source);
    }
    let begun = Instant::now();
    stage.reset(call, &answered)?;
    Ok(begun)
}

/// A connection whose SYN data was acknowledged.
fn taken(stage: &mut ClientStage) -> Result<(Call, Packet), Stop> {
    let call = stage.call(SERVER, REQUEST)?;
    let answered = stage.answer(
        &call.syn,
        &Answer {
            taken: call.syn.payload.len() as u32,
            ..Answer::plain()
        },
    )?;
    stage.first_of(&call)?;
    Ok((call, answered))
}

/// A connection whose SYN data is acknowledged and answered. Returns whether the kernel accepted the answer.
fn get_answer(stage: &mut ClientStage) -> Result<bool, Stop> {
    let (call, answered) = taken(stage)?;
    let mut answer = call.syn.reply(answered.end(), call.syn.end());
    answer.payload = b"hello".to_vec();
    stage.wire.send(&answer)?;
    let source = call.syn.source;
    let covers = |packet: &Packet| packet.source == source && packet.acknowledgment == answer.end();
    let is_taken = stage.wire.wait(SOON, covers).is_some();
    stage.reset(call, &answer)?;
    Ok(is_taken)
}

/// The SYN of another connection, which is then established and reset.
fn try_again(stage: &mut ClientStage, server: Peer) -> Result<Packet, Stop> {
    Ok(stage.open_and_reset(server, &Answer::plain())?)
}

fn is_open(syn: &Packet) -> bool {
    syn.cookie() == Some(&COOKIE) && syn.payload == REQUEST
}

fn is_off(syn: &Packet) -> bool {
    syn.cookie().is_none() && syn.experimental_cookie().is_none() && syn.payload.is_empty()
}

/// How often this network namespace has suspected a black hole (`TCPFastOpenBlackhole`).
fn suspicions() -> Result<u64, LabError> {
    let text = fs::read_to_string("/proc/thread-self/net/netstat")
        .map_err(|error| LabError::system("reading /proc/net/netstat", error))?;
    let counts = tcp_ext(&text);
    Ok(counts.get("TCPFastOpenBlackhole").copied().unwrap_or_default())
}

fn wait_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}

/// Fails if this machine was too busy to look in time.
fn in_time(begun: Instant, time: Duration) -> Result<(), LabError> {
    if begun.elapsed() < time {
        return Ok(());
    }
    let late = format!(
        "that took more than {:.0} s: this machine is too busy",
        time.as_secs_f64()
    );
    Err(LabError::system("connecting again while Fast Open is off", late))
}
