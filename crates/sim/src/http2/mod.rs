//! HTTP/2 (RFC 9113) between a client and a server, as frames: what the h2 crate sends at both ends of the lab.
//!
//! All streams share a connection. The server's frames leave in rounds, one of up to 16 KiB of each response at
//! a time, as fast as the socket takes them; what it has taken is in the order in which it was written. Where requests
//! say how urgent they are, the rounds are those of the most urgent responses. Left out: flow control, which the lab's
//! client never lets run dry, headers beyond 16 KiB, and resets.

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

/// Bytes before the payload of a frame, and of payload at most.
const FRAME_HEADER: u64 = 9;
const MAX_PAYLOAD: u64 = 1 << 14;
/// What a client says first, and its settings with the connection's window.
const PREFACE: u64 = 24;
const CLIENT_SETTINGS: u64 = FRAME_HEADER + 3 * SETTING + WINDOW_UPDATE;
const SERVER_SETTINGS: u64 = FRAME_HEADER + 4 * SETTING + WINDOW_UPDATE;
const SETTING: u64 = 6;
const WINDOW_UPDATE: u64 = FRAME_HEADER + 4;
const SETTINGS_ACK: u64 = FRAME_HEADER;
/// The server's first header says that its compression has no memory (RFC 7541, section 6.3).
const TABLE_SIZE: u64 = 1;
/// What rustls buffers of what the socket does not take (`DEFAULT_BUFFER_LIMIT`), bytes.
const TLS_BUFFER: u64 = 64 * 1024;

/// Both ends.
#[derive(Debug, Default)]
pub(crate) struct Http2 {
    up: Pieces<Frame>,
    down: Pieces<Frame>,
    /// Each end has sent its first.
    client_began: bool,
    server_began: bool,
    /// Requests that came as early data, and are to be asked again.
    refused: Vec<usize>,
    /// Answers that are due some time, in order of asking.
    waiting: Vec<(Nanos, usize)>,
    sending: VecDeque<Answer>,
    /// A first header was sent.
    has_answered: bool,
}

/// What a frame brings.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Needs an answer: the other end's acknowledgment.
    Settings,
    Acknowledgment,
    Request(usize),
    /// The response's header; whether nothing follows.
    Head(usize, bool),
    /// So many bytes of a body; whether nothing follows.
    Data(usize, u64, bool),
    /// The answer that this request is to be asked again.
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
    /// Headers need no turn where bodies have one: the h2 crate sends them at once.
    fn urgency(&self) -> (bool, Priority) {
        let is_body = self.head_is_sent || self.priority == Priority::EQUAL;
        (is_body, self.priority)
    }
}

impl Http2 {
    /// The client asks for `resource`: bytes to be written, in parts that TLS takes one by one.
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

    /// What was asked for last comes as early data, and is to be asked again.
    pub(crate) fn refuse(&mut self, resource: usize) {
        self.refused.push(resource);
    }

    /// The client hears of it.
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

    /// The server reads, and sends what is due and the socket takes.
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

    /// Moves the answers that are due to those that are being sent.
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

    /// What a header has more if it is the first, bytes.
    fn first_head(&mut self) -> u64 {
        if std::mem::replace(&mut self.has_answered, true) {
            0
        } else {
            TABLE_SIZE
        }
    }

    fn send(&mut self, context: Context<'_>, channel: &mut Channel<'_>) {
        let now = context.now;
        // Headers leave with the first data behind them.
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
