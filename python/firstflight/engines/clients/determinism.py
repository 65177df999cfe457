"""Fixes the time and the random numbers that scripts of a page see, so that every load does the same.

Not changed: `performance.now`, timers, `Temporal`, `Intl` without a date. Workers are not changed either:
Playwright starts them before another session can run a script in them.
"""

import json
from email.utils import parsedate_to_datetime

from firstflight.pages import LoadedPage

UNKNOWN_MS = 1_356_998_400_000.0
"""2013-01-01T00:00:00Z: the time in pages whose recording has no time."""

STEP_MS = 1_000
"""`Date` advances in steps, so that requests at almost the same moment have the same URL."""

_SCRIPT = """(({start, began, step}) => {
    const clock = Date.now, shift = start - began;
    const now = () => {
        const elapsed = clock() - began;
        return start + elapsed - elapsed % step;
    };
    const replaced = new Proxy(Date, {
        construct: (real, given, target) => Reflect.construct(real, given.length ? given : [now()], target),
        apply: real => new real(now()).toString(),
    });
    Date.now = now;
    Date.prototype.constructor = replaced;
    globalThis.Date = replaced;

    const wrap = (prototype, name, wrapped) => {
        const {get, set, ...rest} = Object.getOwnPropertyDescriptor(prototype, name);
        Object.defineProperty(prototype, name, {...rest, ...wrapped(get, set)});
    };
    const shifted = get => ({get() {
        const time = get.call(this);
        return time && time + shift;
    }});
    wrap(Performance.prototype, "timeOrigin", shifted);
    const timing = PerformanceTiming.prototype;
    for (const [name, {get}] of Object.entries(Object.getOwnPropertyDescriptors(timing)))
        if (get) wrap(timing, name, shifted);
    wrap(Document.prototype, "cookie", (get, set) => ({get, set(text) {
        set.call(this, String(text).replace(/(;\\s*expires\\s*=)([^;]*)/i, (all, name, date) => {
            const expires = Date.parse(date) - shift;
            return isNaN(expires) ? all : name + new Date(expires).toUTCString();
        }));
    }}));

    const place = location.protocol === "blob:" ? "" : location.href;
    let state = 2463534242;
    const next = () => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return state >>> 0;
    };
    for (let index = 0; index < place.length; index++) {
        state ^= place.charCodeAt(index);
        next();
    }
    state ||= 1;
    Math.random = () => next() / 4294967296;
    const fill = Crypto.prototype.getRandomValues;
    Crypto.prototype.getRandomValues = function getRandomValues(array) {
        fill.call(this, array);
        const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
        for (let index = 0; index < bytes.length; index++) bytes[index] = next() >>> 24;
        return array;
    };
    if (!Crypto.prototype.randomUUID) return;
    Crypto.prototype.randomUUID = function randomUUID() {
        const bytes = this.getRandomValues(new Uint8Array(16));
        bytes[6] = bytes[6] & 15 | 64;
        bytes[8] = bytes[8] & 63 | 128;
        const hex = Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
        return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    };
})"""


def recorded_ms(page: LoadedPage) -> float:
    """When the page was recorded, ms since 1970: the first response's date, else `UNKNOWN_MS`."""
    for _, fields in sorted(page.headers.items()):
        for name, value in fields:
            if name.lower() == "date" and (time_ms := _time_ms(value)) is not None:
                return time_ms
    return UNKNOWN_MS


def script(start_ms: float, began_ms: float) -> str:
    """The script that runs before any script of a document or frame.

    `Date` starts at the recording and advances with the real clock. `performance.timing` and the expiry of
    cookies are shifted by the same time. Random numbers depend on the document's URL alone (Marsaglia's
    xorshift).

    Args:
        start_ms: The time that the page sees at its start, ms since 1970.
        began_ms: The real time at its start, ms since 1970.
    """
    return f"{_SCRIPT}({json.dumps({'start': start_ms, 'began': began_ms, 'step': STEP_MS})})"


def _time_ms(value: str) -> float | None:
    """A date of HTTP, ms since 1970; `None` if it cannot be parsed."""
    try:
        return parsedate_to_datetime(value).timestamp() * 1000
    except (ValueError, OverflowError):
        return None
