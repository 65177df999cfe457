//! What hosts did in the recording: HTTP/2 with some, one connection for several, certificate verification.

use firstflight_loader::{Command, Config, ConnId, Event, Http2, Loader};
use firstflight_page::{Host, HttpSpoken, Page};

use crate::network::MS;
use crate::pages::{document, image, page};

fn host(name: &str, http: HttpSpoken) -> Host {
    Host {
        host: name.to_owned(),
        http: Some(http),
        ..Host::default()
    }
}

/// A document over HTTP/1.1, and two images each of `b.test` and `c.test`, both on `b.test`'s connection.
fn recorded() -> Page {
    let images = ["b.test", "b.test", "c.test", "c.test"].map(image);
    let mut page = page([document(1_000)].into_iter().chain(images).collect());
    for resource in &mut page.resources {
        resource.url = resource.url.replace("http://", "https://");
    }
    page.hosts = vec![
        host("a.test", HttpSpoken::V1_1),
        host("b.test", HttpSpoken::V2),
        Host {
            carrier: Some("b.test".to_owned()),
            ..host("c.test", HttpSpoken::V2)
        },
    ];
    page.validate().expect("a page");
    page
}

/// A loader that has received the document's header, and has discovered the images.
fn loader(page: &Page, config: Config) -> Loader {
    let mut loader = Loader::new(page, config, 0);
    let Some(Command::Open { conn, .. }) = loader.poll() else {
        panic!("it opens a connection");
    };
    loader.handle(0, Event::Writable(conn));
    loader.handle_timeout(MS);
    assert!(matches!(loader.poll(), Some(Command::Send { request: 0, .. })));
    let head = Event::Head {
        conn,
        request: 0,
        status: 200,
        location: None,
    };
    loader.handle(2 * MS, head);
    loader
}

fn commands(loader: &mut Loader) -> Vec<Command> {
    std::iter::from_fn(|| loader.poll()).collect()
}

fn as_recorded() -> Config {
    Config {
        http2: Http2::Recorded,
        verifies: true,
        ..Config::default()
    }
}

#[test]
fn a_connection_of_http2_carries_the_hosts_that_it_carried() {
    let mut loader = loader(&recorded(), as_recorded());
    let opened = commands(&mut loader);
    assert!(matches!(
        opened[..],
        [Command::Open {
            conn: ConnId(1),
            origin: 1,
            ..
        }]
    ));
    loader.handle(3 * MS, Event::Writable(ConnId(1)));
    let sent = commands(&mut loader);
    assert_eq!(sent.len(), 4);
    assert!(
        sent.iter()
            .all(|command| matches!(command, Command::Send { conn: ConnId(1), .. }))
    );
}

#[test]
fn without_the_recording_each_origin_has_connections_of_its_own() {
    let mut loader = loader(&recorded(), Config::default());
    let opened = commands(&mut loader);
    assert_eq!(opened.len(), 4);
    assert!(
        opened
            .iter()
            .all(|command| matches!(command, Command::Open { .. }))
    );
}

#[test]
fn a_certificate_is_verified_once() {
    let mut page = recorded();
    page.hosts[1].http = Some(HttpSpoken::V1_1);
    page.hosts[1].verify_ms = 20.0;
    page.hosts.truncate(2);
    let mut loader = loader(&page, as_recorded());
    assert_eq!(commands(&mut loader).len(), 4);
    loader.handle(10 * MS, Event::Writable(ConnId(1)));
    loader.handle(15 * MS, Event::Writable(ConnId(2)));
    assert_eq!(loader.poll(), None);
    assert_eq!(loader.next_timeout(), Some(30 * MS));
    loader.handle_timeout(30 * MS);
    assert_eq!(commands(&mut loader).len(), 2);
    let record = loader.finish(31 * MS);
    assert_eq!(record.connections[1].writable, Some(30 * MS));
}
