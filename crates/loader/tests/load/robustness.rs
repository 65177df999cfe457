//! No sequence of events, sensible or not, makes the loader panic.

use std::collections::HashMap;

use firstflight_loader::{Command, Config, ConnId, Event, Loader, NANOS_PER_MS, Nanos};
use firstflight_page::{Kind, Page, Via};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::pages::{at_byte, delayed, document, found, image, page, redirecting};

/// A page with every way of discovery.
fn varied() -> Page {
    page(vec![
        document(10),
        found(Kind::Script, "a.test", 0, Via::Parser),
        at_byte(10, found(Kind::Style, "b.test", 0, Via::Parser)),
        delayed(5.0, found(Kind::Xhr, "b.test", 1, Via::Script)),
        found(Kind::Font, "c.test", 2, Via::Style),
        redirecting(image("c.test")),
        found(Kind::Image, "d.test", 5, Via::Redirect),
        image("a.test"),
        image("a.test"),
    ])
}

#[derive(Debug, Clone)]
enum Step {
    /// Connection, kind of event, a number, and whether the event names the request that the connection carries.
    Event(u32, u8, u64, bool),
    Timeout,
    Wait(Nanos),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..12_u32, 0..6_u8, 0..12_u64, any::<bool>()).prop_map(|(conn, what, number, fits)| Step::Event(conn, what, number, fits)),
        1 => Just(Step::Timeout),
        2 => (0..20 * NANOS_PER_MS).prop_map(Step::Wait),
    ]
}

fn event(conn: ConnId, what: u8, number: u64, request: usize) -> Event<'static> {
    match what {
        0 => Event::Writable(conn),
        1 => Event::RequestSent { conn, request },
        2 if number == 0 => Event::Head {
            conn,
            request,
            status: 404,
            location: None,
        },
        2 if number < 3 => Event::Head {
            conn,
            request,
            status: 302,
            location: Some("/"),
        },
        2 => Event::Head {
            conn,
            request,
            status: 200,
            location: None,
        },
        3 if number == 0 => Event::Body {
            conn,
            request,
            bytes: u64::MAX,
        },
        3 => Event::Body {
            conn,
            request,
            bytes: number,
        },
        4 => Event::End {
            conn,
            request,
            reusable: number > 1,
        },
        _ => Event::Failed { conn, error: "gone" },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_order_of_events_is_survived_and_the_load_ends_in_time(steps in vec(step(), 0..150), max in 1..5_usize) {
        let config = Config { max_connections: max, ..Config::default() };
        let mut loader = Loader::new(&varied(), config, 0);
        let mut now = 0;
        let mut carried = HashMap::new();
        for step in steps {
            match step {
                Step::Event(conn, what, number, fits) => {
                    let conn = ConnId(if conn == 11 { u32::MAX } else { conn });
                    let other = number as usize;
                    let request = carried.get(&conn).copied().filter(|_| fits).unwrap_or(other);
                    loader.handle(now, event(conn, what, number, request));
                }
                Step::Wait(span) => now += span,
                Step::Timeout => {
                    now = loader.next_timeout().map_or(now, |at| at.max(now));
                    loader.handle_timeout(now);
                }
            }
            while let Some(command) = loader.poll() {
                if let Command::Send { conn, request } = command {
                    carried.insert(conn, request);
                }
            }
        }
        loader.handle_timeout(now.max(config.load_timeout));
        prop_assert!(loader.is_done());
        prop_assert_eq!(loader.next_timeout(), None);
        let record = loader.finish(now);
        prop_assert_eq!(record.requests.len(), 9);
        prop_assert!(record.end <= config.load_timeout.max(now));
    }
}

#[test]
fn a_clock_that_runs_backwards_is_survived() {
    let mut loader = Loader::new(&varied(), Config::default(), 1_000);
    loader.handle(10, Event::Writable(ConnId(0)));
    loader.handle(
        5,
        Event::Failed {
            conn: ConnId(0),
            error: "gone",
        },
    );
    assert!(loader.finish(0).failed.is_some());
}
