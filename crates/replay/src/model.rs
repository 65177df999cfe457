//! Runs a flow on the model: [`Pair`] over the path, or with the arrivals of a kernel's packets.

use std::collections::HashMap;

use firstflight_path::{Direction, Ecn, Nanos, PathError};
use firstflight_tcp::pair::{self, Fate, Link, Pair};
use firstflight_tcp::{FastOpen as SynOption, Key, Settings, Ticks};

use crate::case::{FastOpen, Flow, Machine, Script};
use crate::path::Path;
use crate::trace::{Info, Packet, Sent, Trace};

/// A tick at `CONFIG_HZ=250`.
const JIFFY: Nanos = 4_000_000;
/// The server's key, and the key of another server.
const KEY: Key = 7;
const OTHER_KEY: Key = 8;
/// A connection that has not ended by then is not run further.
const LONGEST: Nanos = 120_000_000_000;

/// Runs a flow on the path with a script, with a machine's clock and memory.
///
/// # Errors
/// [`PathError`] if a value of the flow is out of range.
pub fn run(flow: &Flow, script: &Script, machine: Machine) -> Result<Trace, PathError> {
    Ok(trace(flow, Path::new(flow, script)?, machine, LONGEST))
}

/// Runs a flow whose packets arrive when those of `recorded` arrived, and offer the same windows. So each end's
/// packets depend only on what it gets and when. Meaningful up to the first packet that differs.
pub fn follow(flow: &Flow, recorded: &Trace, machine: Machine) -> Trace {
    let mut fates = HashMap::new();
    for direction in [Direction::Up, Direction::Down] {
        for (index, sent) in recorded.of(direction).enumerate() {
            let fate = Fate {
                arrivals: sent.arrived.clone(),
                is_marked: sent.is_marked,
                window: sent.window,
            };
            fates.insert((direction, index + 1), fate);
        }
    }
    let link = |now: Nanos, packet: &pair::Packet<'_>| {
        let mut fate = fates
            .get(&(packet.direction, packet.number))
            .cloned()
            .unwrap_or_default();
        fate.arrivals.iter_mut().for_each(|at| *at = now.max(*at));
        fate.is_marked &= packet.segment.ecn == Ecn::Capable;
        fate
    };
    trace(flow, link, machine, recorded.end)
}

fn trace(flow: &Flow, link: impl Link, machine: Machine, longest: Nanos) -> Trace {
    let mut pair = Pair::new(applications(flow, machine), link).starting_at(machine.start);
    let mut infos = Vec::new();
    while pair.step().is_some() {
        for sent in &pair.trace()[infos.len()..] {
            let sender = match sent.direction {
                Direction::Up => Some(pair.client()),
                Direction::Down => pair.server(),
            };
            infos.push(sender.map(|sender| Info::from(sender.info())));
        }
        if pair.next_event().is_none_or(|at| at > longest) {
            break;
        }
    }
    let sent = pair.trace().iter().zip(infos).map(|(sent, info)| Sent {
        at: sent.at,
        direction: sent.direction,
        packet: Packet::from(&sent.segment),
        window: Some(sent.segment.window),
        arrived: sent.arrivals.clone(),
        is_marked: sent.is_marked,
        info,
    });
    Trace {
        sent: sent.collect(),
        end: longest.min(pair.now()),
    }
}

fn applications(flow: &Flow, machine: Machine) -> pair::Flow {
    let settings = Settings {
        algorithm: flow.algorithm,
        initial_window: flow.initial_window,
        ecn: flow.ecn,
        ticks: Ticks::new(machine.jiffies * JIFFY),
        memory: machine.memory,
        ..Settings::default()
    };
    let exchanges = flow.exchanges.iter().map(|exchange| pair::Exchange {
        server_time: exchange.wait,
        ..pair::Exchange::new(exchange.up, exchange.down)
    });
    pair::Flow {
        client: settings,
        server: settings,
        fast_open: match flow.fast_open {
            FastOpen::None => SynOption::Absent,
            FastOpen::Request => SynOption::Request,
            FastOpen::Cookie => SynOption::Cookie(KEY),
            FastOpen::Unknown => SynOption::Cookie(OTHER_KEY),
        },
        server_key: Some(KEY),
        exchanges: exchanges.collect(),
        closes: flow.close,
        polls: true,
    }
}
