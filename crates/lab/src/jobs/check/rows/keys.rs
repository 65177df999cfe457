//! Which cookies a server accepts: addresses, keys and their rotation (RFC 7413, section 4.1.2).

use nix::libc;

use super::{Level, Row, Trial};
use crate::jobs::check::finding::{Finding, Stop, yes};
use crate::jobs::check::server::{CLIENT, OPEN, OTHER_CLIENT, REQUEST, ServerStage, Settings};
use crate::jobs::check::wire::SOON;
use crate::net;
use crate::packet::fast_open;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R12-address",
        level: Level::Should,
        section: "4.1.2",
        behaviour: "A cookie is good for the client address that it was given to; from another one nothing \
            is gained, and nothing lost.",
        done: "A SYN with data and a good cookie from another address; the data again with the ACK.",
        trial: Trial::Server {
            settings: OPEN,
            run: address,
        },
    },
    Row {
        id: "R13-rotation",
        level: Level::Described,
        section: "4.1.2",
        behaviour: "While a key is being replaced cookies of the old one are taken, and new ones given.",
        done: "A cookie; another key, with the old one as backup (tcp_fastopen_key); then a SYN with data.",
        trial: Trial::Server {
            settings: OPEN,
            run: rotation,
        },
    },
    Row {
        id: "R18-keys",
        level: Level::Advice,
        section: "4.1.2",
        behaviour: "Servers behind one address should share their key: else Fast Open falls back, \
            unnoticed.",
        done: "A cookie; another key without backup, as if another machine answered; then a SYN with data.",
        trial: Trial::Server {
            settings: OPEN,
            run: other_machine,
        },
    },
    Row {
        id: "per-socket-key",
        level: Level::Linux,
        section: "",
        behaviour: "A listener with a key of its own (TCP_FASTOPEN_KEY) makes and takes its own cookies.",
        done: "A cookie; then a key for the socket; the old cookie and a new one.",
        trial: Trial::Server {
            settings: Settings { own: true, ..OPEN },
            run: per_socket,
        },
    },
];

const KEY: &str = "01234567-89abcdef-01234567-89abcdef";
const OTHER_KEY: &str = "fedcba98-76543210-fedcba98-76543210";

fn address(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let syn = stage.syn_from(OTHER_CLIENT, &ticket, REQUEST)?;
    let syn_ack = stage.syn_ack(&syn)?;
    stage.ack(&syn, &syn_ack, REQUEST)?;
    let answered = stage.data_to(&syn, SOON).is_some();
    let taken = syn_ack.takes_of(&syn) != Some(0);
    let seen = format!(
        "Data acknowledged by the SYN-ACK: {}; answered after the ACK: {}.",
        yes(taken),
        yes(answered)
    );
    Ok(Finding::judged(!taken && answered, seen))
}

fn rotation(stage: &mut ServerStage) -> Result<Finding, Stop> {
    net::set_sysctl("tcp_fastopen_key", KEY)?;
    let old = stage.cookie()?;
    net::set_sysctl("tcp_fastopen_key", &format!("{OTHER_KEY},{KEY}"))?;
    let (syn, syn_ack) = stage.open(&fast_open(&old), REQUEST)?;
    let taken = syn_ack.takes_of(&syn) == Some(REQUEST.len() as u32);
    let early = stage.data_to(&syn, SOON).is_some();
    let fresh = syn_ack
        .cookie()
        .is_some_and(|cookie| !cookie.is_empty() && cookie != old);
    let seen = format!(
        "Data with the old cookie acknowledged: {}; answered before any ACK: {}; new cookie in the \
         SYN-ACK: {}.",
        yes(taken),
        yes(early),
        yes(fresh)
    );
    Ok(Finding::judged(taken && early && fresh, seen))
}

fn other_machine(stage: &mut ServerStage) -> Result<Finding, Stop> {
    net::set_sysctl("tcp_fastopen_key", KEY)?;
    let old = stage.cookie()?;
    net::set_sysctl("tcp_fastopen_key", OTHER_KEY)?;
    let (syn, syn_ack) = stage.open(&fast_open(&old), REQUEST)?;
    stage.ack(&syn, &syn_ack, REQUEST)?;
    let answered = stage.data_to(&syn, SOON).is_some();
    Err(Stop::NotApplicable(format!(
        "It binds operators. Seen: data with the other machine's cookie acknowledged: {}; answered after \
         the ACK: {}; \
         new cookie in the SYN-ACK: {}.",
        yes(syn_ack.takes_of(&syn) != Some(0)),
        yes(answered),
        yes(syn_ack.cookie().is_some_and(|cookie| cookie != old)),
    )))
}

fn per_socket(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let before = stage.cookie()?;
    let listener = stage.own()?.listener();
    let set = listener.map(|listener| net::set_tcp_option(listener, libc::TCP_FASTOPEN_KEY, &[7_u8; 16]));
    if let Some(Err(error)) = set {
        return Ok(Finding::judged(
            false,
            format!("The kernel refuses the option: {error}."),
        ));
    }
    let (old_syn, old_answer) = stage.open(&fast_open(&before), REQUEST)?;
    let after = stage.ask_for_cookie(CLIENT)?.unwrap_or_default();
    let (syn, syn_ack) = stage.open(&fast_open(&after), REQUEST)?;
    let old_taken = old_answer.takes_of(&old_syn) != Some(0);
    let taken = syn_ack.takes_of(&syn) == Some(REQUEST.len() as u32);
    let seen = format!(
        "The old cookie was taken: {}; the new one differs: {}, and was taken: {}.",
        yes(old_taken),
        yes(after != before),
        yes(taken)
    );
    Ok(Finding::judged(!old_taken && after != before && taken, seen))
}
