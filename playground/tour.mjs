// The tour: six steps from one request to the paper's table. A step sets everything that it names.

export const STEPS = [
  {
    title: "One request",
    text: "A client asks a server for one document, 100 ms away. With TCP it waits a round trip for the handshake and another for the answer. With TCP Fast Open (TFO) and a cookie from an earlier visit, the request rides in the SYN: one round trip less. Look at the first line of both packet diagrams.",
    set: { page: "one", rtt: 100, down: "4mbit", up: "256kbit", loss: "0", queue: "1000p", scheme: "http", http: "1.1", baseline: "tcp", treatment: "tfo" },
  },
  {
    title: "The distance",
    text: "The same request, 300 ms away. TFO saves one RTT again, now three times as much. A faster link does not help here: drag the rates, then the RTT, and watch which one the PLT follows.",
    set: { page: "one", rtt: 300, down: "64mbit", up: "64mbit", loss: "0", queue: "1000p", scheme: "http", http: "1.1", baseline: "tcp", treatment: "tfo" },
  },
  {
    title: "TLS",
    text: "Over https the TLS handshake adds a round trip, which Fast Open alone leaves. Early data (0-RTT) sends the request behind the ClientHello; in the SYN both ride in one flight. Compare with quic-0rtt, which does the same over UDP.",
    set: { page: "one", rtt: 100, down: "4mbit", up: "4mbit", loss: "0", queue: "1000p", scheme: "https", http: "1.1", baseline: "tcp", treatment: "tfo+early-data" },
  },
  {
    title: "A whole page",
    text: "29 requests to four hosts. Many connections are opened, but the PLT falls only by what the critical path waited for: the dark line under the bars. Compare the parts in the table: handshakes shrink, and queueing may grow, because requests that leave sooner meet in the queue.",
    set: { page: "wikipedia", rtt: 100, down: "4mbit", up: "256kbit", loss: "0", queue: "1000p", scheme: "http", http: "1.1", baseline: "tcp", treatment: "tfo" },
  },
  {
    title: "Loss and chance",
    text: "Two packets in a hundred are lost, and the queue holds 50. Change the seed: other packets are lost, and the improvement changes, even its sign. So one load proves nothing. firstflight repeats loads in paired blocks and gives the improvement with an interval.",
    set: { page: "wikipedia", rtt: 100, down: "4mbit", up: "256kbit", loss: "0.02", queue: "50p", scheme: "http", http: "1.1", baseline: "tcp", treatment: "tfo" },
  },
  {
    title: "The paper's table",
    text: "Four pages at three RTTs, each with and without TFO: Table 1 of the paper that introduced it (CoNEXT 2011), simulated here. Next to it is what the paper measured with Chrome and the pages of 2011: TFO helps in the same cells, more with the RTT; the pages and the browser were others, so the times differ.",
    set: { page: "wikipedia", rtt: 200, down: "4mbit", up: "256kbit", loss: "0", queue: "1000p", seed: 1, scheme: "http", http: "1.1", baseline: "tcp", treatment: "tfo" },
    table: true,
  },
];
