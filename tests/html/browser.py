# SPDX-License-Identifier: Apache-2.0
"""A headless chromium, driven over a pair of pipes: the DevTools protocol as JSON with a NUL behind each message, and nothing but Python's
own library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program="chromium"):
        self.profile = tempfile.mkdtemp(prefix="berth_browser_")
        from_us, self.to_browser = os.pipe()
        self.from_browser, from_it = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--window-size=1280,900",
                   "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "about:blank"]
        command = ["bash", "-c", f'exec "$@" 3<&{from_us} 4>&{from_it}', "browser", program, *options]
        self.process = subprocess.Popen(command, pass_fds=(from_us, from_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(from_it)
        self.rest = b""
        self.last = 0
        self.session = None
        self.events = []  # events of the browser: (method, parameters)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.from_browser, 1 << 20) if ready else b""
            if not piece:
                raise RuntimeError("the browser does not answer" if not ready else "the browser has gone")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        if "id" not in message:
            self.events.append((message["method"], message["params"]))
        return message

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 120
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_for("document.readyState === 'complete'")
        self.settle()

    def evaluate(self, script):
        """The value of an expression, or of what it promises."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer["exceptionDetails"])))
        return answer["result"].get("value")

    def wait_for(self, script):
        deadline = time.monotonic() + 60
        while not self.evaluate(script):
            if time.monotonic() > deadline:
                raise RuntimeError("waited in vain for " + script)
            time.sleep(0.02)

    def settle(self):
        """Until what was asked for is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => true)")

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def press(self, key, **more):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        codes = {"Enter": 13, "Tab": 9, "Escape": 27}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code, **more)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def lights(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def size(self, width, height, ratio=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)
        self.settle()

    def screenshot(self, path):
        image = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))
