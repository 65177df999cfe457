//! HTTP/2 (RFC 9113) between a client and a server, as frames: what the h2 crate sends at both ends of the lab.
//!
//! All streams share a connection. The server sends frames in rounds: up to 16 KiB of each response in turn, as
//! fast as the socket accepts them. The socket sends in the order of writing. If requests state priorities, a round
//! has only the most urgent responses. Left out: flow control, which never blocks the lab's client, headers beyond
//! 16 KiB, and resets.

mod hpack;

use std::collections::VecDeque;

use firstflight_load::priority::{self, Priority};
use firstflight_loader::{ConnId, Event, TOO_EARLY};
use firstflight_path::Nanos;

use crate::channel::Channel;
use crate::client::Browser;
use crate::page::Context;
use crate::pieces::Pieces;
use crate::tls::Heard;
pub(crate) use hpack::Blocks;

/// Bytes of a frame's header, and the largest payload.
const FRAME_HEADER: u64 = 9;
const MAX_PAYLOAD: u64 = 1 << 14;
/// The client's connection preface, and its settings with the connection's window.
const PREFACE: u64 = 24;
const CLIENT_SETTINGS: u64 = FRAME_HEADER + 3 * SETTING + WINDOW_UPDATE;
const SERVER_SETTINGS: u64 = FRAME_HEADER + 4 * SETTING + WINDOW_UPDATE;
const SETTING: u64 = 6;
const WINDOW_UPDATE: u64 = FRAME_HEADER + 4;
const SETTINGS_ACK: u64 = FRAME_HEADER;
/// The server's first header sets the size of its dynamic table to 0 (RFC 7541, section 6.3).
const TABLE_SIZE: u64 = 1;
/// Size of the buffer in rustls for data that the socket does not accept (`DEFAULT_BUFFER_LIMIT`), bytes.
const TLS_BUFFER: u64 = 64 * 1024;

/// Both ends of a connection.
#[derive(Debug, Default)]
pub(crate) struct Http2 {
    up: Pieces<Frame>,
    down: Pieces<Frame>,
    /// Whether the client has sent its preface, and the server its settings.
    client_began: bool,
    server_began: bool,
    /// Requests in early data that the server will answer with 425.
    refused: Vec<usize>,
    /// Answers with the time they are due, in the order of requests.
    waiting: Vec<(Nanos, usize)>,
    sending: VecDeque<Answer>,
    /// Whether a first header was sent.
    has_answered: bool,
}

/// The content of a frame.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Settings, which the other end acknowledges.
    Settings,
    Acknowledgment,
    Request(usize),
    /// The response's header; whether it ends the stream.
    Head(usize, bool),
    /// Bytes of a body; whether they end the stream.
    Data(usize, u64, bool),
    /// A 425 response to this request.
    TooEarly(usize),
}

/// A response that is being sent.
#[derive(Debug, Clone, Copy)]
struct Answer {
    resource: usize,
    priority: Priority,
    head_is_sent: bool,
    left: u64,
}

impl Answer {
    /// With priorities, headers go before all bodies: the h2 crate sends them at once.
    fn urgency(&self) -> (bool, Priority) {
        let is_body = self.head_is_sent || self.priority == Priority::EQUAL;
        (is_body, self.priority)
    }
}

impl Http2 {
    /// The client requests `resource`. Returns the bytes to write, in parts that TLS encrypts one by one.
    pub(crate) fn ask(&mut self, context: Context<'_>, resource: usize) -> [u64; 2] {
        let request = FRAME_HEADER + context.http2_request(resource);
        if self.client_began {
            self.up.push(request, Frame::Request(resource));
            return [0, request];
        }
        self.client_began = true;
        let request = request + context.exchange(resource).blocks.authority;
        self.up.push(PREFACE + CLIENT_SETTINGS, Frame::Settings);
        self.up.push(request, Frame::Request(resource));
        [PREFACE, CLIENT_SETTINGS + request]
    }

    /// The latest request is early data that the server will answer with 425.
    pub(crate) fn refuse(&mut self, resource: usize) {
        self.refused.push(resource);
    }

    /// The client handles frames that have arrived.
    pub(crate) fn hear(
        &mut self,
        context: Context<'_>,
        conn: ConnId,
        heard: &Heard,
        channel: &mut Channel<'_>,
        browser: &mut Browser,
    ) {
        let now = context.now;
        self.down.arrive(heard.data);
        while let Some(frame) = self.down.pop() {
            let mut status = None;
            let (request, bytes, is_last) = match frame {
                Frame::TooEarly(resource) => {
                    status = Some(TOO_EARLY);
                    (resource, None, true)
                }
                Frame::Settings => {
                    self.up.push(SETTINGS_ACK, Frame::Acknowledgment);
                    channel.write(now, SETTINGS_ACK);
                    continue;
                }
                Frame::Acknowledgment | Frame::Request(_) => continue,
                Frame::Head(resource, is_last) => (resource, None, is_last),
                Frame::Data(resource, bytes, is_last) => (resource, Some(bytes), is_last),
            };
            browser.wire_bytes[request] += bytes.unwrap_or_default();
            let exchange = context.exchange(request);
            let loader = &mut browser.loader;
            let event = match bytes {
                Some(bytes) => Event::Body { conn, request, bytes },
                None => Event::Head {
                    conn,
                    request,
                    status: status.unwrap_or(exchange.status),
                    location: exchange.location.as_deref().filter(|_| status.is_none()),
                },
            };
            loader.handle(now, event);
            if is_last {
                let end = Event::End {
                    conn,
                    request,
                    reusable: true,
                };
                loader.handle(now, end);
            }
        }
    }

    /// When [`Self::serve`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        self.waiting.iter().map(|(due, _)| *due).min()
    }

    /// The server reads, and sends answers that are due as far as the socket accepts them.
    pub(crate) fn serve(&mut self, context: Context<'_>, channel: &mut Channel<'_>) {
        let now = context.now;
        let heard = channel.read(now);
        if heard.is_ready && !self.server_began {
            self.server_began = true;
            self.down.push(SERVER_SETTINGS, Frame::Settings);
            channel.write(now, SERVER_SETTINGS);
        }
        self.up.arrive(heard.data);
        while let Some(frame) = self.up.pop() {
            match frame {
                Frame::Settings => {
                    self.down.push(SETTINGS_ACK, Frame::Acknowledgment);
                    channel.write(now, SETTINGS_ACK);
                }
                Frame::Request(resource) if self.refused.contains(&resource) => {
                    self.refused.retain(|&other| other != resource);
                    let bytes = self.first_head() + FRAME_HEADER + hpack::too_early();
                    self.down.push(bytes, Frame::TooEarly(resource));
                    channel.write(now, bytes);
                }
                Frame::Request(resource) => {
                    let due = now + context.exchange(resource).wait;
                    self.waiting.push((due, resource));
                }
                Frame::Acknowledgment | Frame::Head(..) | Frame::Data(..) | Frame::TooEarly(_) => {}
            }
        }
        self.begin(context);
        self.send(context, channel);
    }

    /// Starts to send the answers that are due.
    fn begin(&mut self, context: Context<'_>) {
        let sending = &mut self.sending;
        self.waiting.retain(|&(due, resource)| {
            if due <= context.now {
                sending.push_back(Answer {
                    resource,
                    priority: context.priority(resource),
                    head_is_sent: false,
                    left: context.exchange(resource).body_bytes,
                });
            }
            due > context.now
        });
    }

    /// What the first header adds, bytes.
    fn first_head(&mut self) -> u64 {
        if std::mem::replace(&mut self.has_answered, true) {
            0
        } else {
            TABLE_SIZE
        }
    }

    fn send(&mut self, context: Context<'_>, channel: &mut Channel<'_>) {
        let now = context.now;
        // Headers leave together with the first data after them.
        let mut headers = 0;
        while !self.sending.is_empty() && channel.socket.unwritten() < TLS_BUFFER {
            let next = priority::next(self.sending.iter().map(Answer::urgency));
            let Some((place, mut answer)) = next.and_then(|place| Some((place, self.sending.remove(place)?)))
            else {
                break;
            };
            if answer.head_is_sent {
                let payload = answer.left.min(MAX_PAYLOAD);
                answer.left -= payload;
                let is_last = answer.left == 0;
                let frame = Frame::Data(answer.resource, payload, is_last);
                self.down.push(FRAME_HEADER + payload, frame);
                channel.write(now, std::mem::take(&mut headers) + FRAME_HEADER + payload);
            } else {
                answer.head_is_sent = true;
                let block = context.exchange(answer.resource).blocks.response;
                let bytes = self.first_head() + FRAME_HEADER + block;
                let frame = Frame::Head(answer.resource, answer.left == 0);
                self.down.push(bytes, frame);
                headers += bytes;
            }
            if answer.left > 0 && answer.priority.is_incremental() {
                self.sending.push_back(answer);
            } else if answer.left > 0 {
                self.sending.insert(place, answer);
            }
        }
        if headers > 0 {
            channel.write(now, headers);
        }
    }
}
