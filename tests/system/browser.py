"""Drives the page of the example web in headless Chromium, as a person would:
browser.py PORT LINES [KEY]

PORT is that of the site, and LINES that of the rooms. With KEY, the SHA-256 of the public key of a
certificate, the site is visited by https, and that certificate is accepted. With DOMT_PROTOCOL, the
page has to come by that protocol, such as h2. Chromium is talked with over a pipe by the
DevTools protocol. The exit status is 0 if each part of the page has worked. With DOMT_PICTURES,
a directory, pictures of the page are put there.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

WAIT_S = 20
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync
    --disable-extensions --disable-default-apps --disable-dev-shm-usage --mute-audio --hide-scrollbars
    --remote-debugging-pipe --window-size=1100,900""".split()


class Browser:
    """Chromium with one page. Commands are answered by their number; events are kept."""

    def __init__(self, profile, flags):
        from_us, self.to = os.pipe()
        self.back, to_us = os.pipe()

        def connect():  # Chromium reads from 3 and writes to 4
            reads, writes = os.dup(from_us), os.dup(to_us)
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self.process = subprocess.Popen(
            ["chromium", *FLAGS, *flags, "--user-data-dir=" + profile, "about:blank"],
            close_fds=False, preexec_fn=connect, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(each for each in pages if each["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise EOFError("Chromium has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(method + ": " + message["error"]["message"])
                return message["result"]
            self.events.append(message)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(expression + ": " + str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, what, expression):
        until = time.monotonic() + WAIT_S
        while not self.evaluate(expression):
            if time.monotonic() > until:
                text = self.evaluate("document.body.innerText")
                raise TimeoutError(what + ": " + expression + " is false in\n" + text)
            time.sleep(0.02)
        print("ok", what)

    def picture(self, name, dark, width, height):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        time.sleep(1)  # the bars move
        image = self.call("Page.captureScreenshot", format="png")["data"]
        with open(name, "wb") as file:
            file.write(base64.b64decode(image))

    def end(self):
        try:
            self.call("Browser.close")
        except (EOFError, OSError):
            pass
        self.process.wait(WAIT_S)


def fill(browser, name, text):
    browser.evaluate(f"document.getElementById('{name}').value = {json.dumps(text)}")


def press(browser, form, button=0):
    browser.evaluate(f"document.querySelectorAll('#{form} button')[{button}].click()")


def shows(name, text):
    return f"document.getElementById('{name}').textContent.includes({json.dumps(text)})"


def try_keys(browser):
    press(browser, "keys", 0)
    browser.wait("a key that is not there", shows("keys-answer", "404 no such key"))
    fill(browser, "key", "a key/with ?&#%")
    fill(browser, "value", "<b id=bold>hello</b>")
    press(browser, "keys", 1)
    browser.wait("a put", shows("keys-answer", "204"))
    press(browser, "keys", 0)
    browser.wait("a get", shows("keys-answer", "200 <b id=bold>hello</b>"))
    press(browser, "keys", 2)
    browser.wait("a delete", shows("keys-answer", "204"))
    press(browser, "keys", 0)
    browser.wait("a get behind it", shows("keys-answer", "404"))


def try_echo(browser):
    fill(browser, "body", "one\ntwo é")
    press(browser, "echo", 0)
    browser.wait("an echo", shows("echo-answer", "200 the same: 9 characters"))
    press(browser, "echo", 1)
    browser.wait("a large echo", shows("echo-answer", "200 the same: 100000 characters"))


def try_chat(browser, lines_port):
    """The browser, and a guest who comes by the port for lines, hear each other."""
    guest = socket.create_connection(("127.0.0.1", lines_port), timeout=WAIT_S)
    lines = guest.makefile("rb")
    guest.sendall(b"/join garden\nin the garden\n")
    assert lines.readline() == b"in the garden\n"
    browser.evaluate("document.getElementById('room').value = 'garden'")
    fill(browser, "name", "ada")
    press(browser, "join")
    browser.wait("a join", shows("chat-state", "in garden"))
    fill(browser, "text", "hello é <i id=bold>you</i>")
    press(browser, "say")
    assert lines.readline() == "ada: hello é <i id=bold>you</i>\n".encode()
    browser.wait("one's own line", shows("lines", "ada: hello é <i id=bold>you</i>"))
    fill(browser, "text", "é" * 237)
    press(browser, "say")
    browser.wait("a text that is too long", shows("chat-state", "that is too long"))
    guest.sendall(b"hello ada, \xff\n")
    browser.wait("a line of the other door", shows("lines", "hello ada, ?"))
    guest.close()


def try_page(browser, url, lines_port):
    browser.call("Page.enable")
    browser.call("Runtime.enable")
    browser.call("Log.enable")
    browser.call("Network.enable")
    browser.call("Page.navigate", url=url)
    browser.wait("the page", "document.readyState === 'complete' && !!document.getElementById('json')")
    protocol = browser.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol")
    assert os.environ.get("DOMT_PROTOCOL", protocol) == protocol, protocol
    browser.wait("events", shows("events-state", "live"))
    browser.wait("a rate", "/^[0-9,]+$/.test(document.getElementById('requests').textContent)")
    press(browser, "json")
    browser.wait("JSON", shows("json-answer", '"message": "hello"'))
    try_keys(browser)
    try_echo(browser)
    try_chat(browser, lines_port)
    if os.environ.get("DOMT_PROTOCOL") == "h2":  # the WebSocket is a stream of it, too
        answers = [event["params"]["response"]["status"] for event in browser.events
                   if event["method"] == "Network.webSocketHandshakeResponseReceived"]
        assert answers == [200], answers
    browser.wait("no HTML of strangers", "document.getElementById('bold') === null")
    browser.call("Emulation.setDeviceMetricsOverride", width=360, height=740,
                 deviceScaleFactor=1, mobile=True)
    browser.wait("a page that fits a phone", "document.documentElement.scrollWidth <= 360")


def complaints(browser):
    """What the console of the page has said, but for the answers 404 that were asked for."""
    browser.evaluate("0")
    found = []
    for event in browser.events:
        entry = event.get("params", {}).get("entry", {})
        if event["method"] == "Runtime.exceptionThrown":
            found.append(str(event["params"]["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and "status of 404" not in entry["text"]:
            found.append(entry["text"])
    return found


def take_pictures(browser, directory, lines_port):
    fill(browser, "key", "greeting")
    fill(browser, "value", "hello")
    press(browser, "keys", 1)
    browser.evaluate("document.getElementById('room').value = 'lobby'")
    press(browser, "join")
    browser.wait("a join for the picture", shows("chat-state", "in lobby"))
    with socket.create_connection(("127.0.0.1", lines_port)) as guest:
        guest.sendall(b"grace: hello from telnet\n")
        browser.wait("a line for the picture", shows("lines", "grace"))
    fill(browser, "text", "and hello from a browser")
    press(browser, "say")
    press(browser, "keys", 0)
    browser.wait("a value for the picture", shows("keys-answer", "200 hello"))
    for name, dark, width, height in (("web-light", False, 1040, 1120), ("web-dark", True, 400, 830)):
        browser.picture(os.path.join(directory, name + ".png"), dark, width, height)


def main():
    profile = tempfile.mkdtemp(prefix="domt-browser-")
    key = sys.argv[3:4]
    browser = Browser(profile, ["--ignore-certificate-errors-spki-list=" + each for each in key])
    try:
        url = ("https" if key else "http") + f"://127.0.0.1:{int(sys.argv[1])}/"
        try_page(browser, url, int(sys.argv[2]))
        found = complaints(browser)
        assert not found, found
        if "DOMT_PICTURES" in os.environ:
            take_pictures(browser, os.environ["DOMT_PICTURES"], int(sys.argv[2]))
    finally:
        browser.end()
        shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    main()
