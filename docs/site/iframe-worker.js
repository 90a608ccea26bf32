/* SPDX-License-Identifier: Apache-2.0 */
/* Browsers start no worker from file://, and the theme's search is one. There, a frame of the same origin runs its script: what the page posts to
 * the frame's window is the worker's message, and what the script posts comes back from there. */
"use strict";
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.inside = this.frame.contentWindow;
      const tell = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
      inside.document.open();
      inside.document.write("<!doctype html><title>search</title>");
      inside.document.close();
      inside.postMessage = (data) => setTimeout(tell, 0, data);
      inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
      this.ready = this.load(String(url));
      this.addEventListener("message", (event) => this.onmessage && this.onmessage(event));
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, {src: url, onload: resolve, onerror: reject});
        this.inside.document.head.append(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", {data})));
    }
    terminate() {
      this.frame.remove();
    }
  };
