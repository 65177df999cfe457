// The site's search runs in a worker, and a browser starts none for a page that was opened as a file. Here, for such
// pages only: a worker in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<!doctype html><title>Search</title>"
      this.frame.addEventListener("load", () => this.start(url), { once: true })
      document.addEventListener("DOMContentLoaded", () => document.body.append(this.frame), { once: true })
      if (document.body) document.body.append(this.frame)
    }

    start(url) {
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.tell(data)
      const script = inside.document.createElement("script")
      script.src = url
      script.addEventListener("load", () => {
        this.waiting.forEach(data => this.deliver(data))
        this.waiting = null
      })
      inside.document.body.append(script)
    }

    // As from a worker: a copy, and later.
    tell(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) })
      setTimeout(() => {
        this.onmessage?.(event)
        this.dispatchEvent(event)
      })
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.deliver(data)
    }

    deliver(data) {
      const inside = this.frame.contentWindow
      const event = new inside.MessageEvent("message", { data: inside.structuredClone(data) })
      setTimeout(() => inside.dispatchEvent(event))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
