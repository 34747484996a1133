// The checker, in a worker: questions are answered in their order, so the page never waits for Python.

export class Engine {
  #worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
  #waiting = new Map();
  #number = 0;

  /** `report` is called with the state of loading: a text, and whether it is an error. */
  constructor(report) {
    this.ready = new Promise((resolve) => {
      this.#worker.onmessage = ({ data }) => {
        if (data.ready) {
          resolve();
        } else if (data.failed) {
          report(`Python could not be loaded: ${data.failed}`, true);
        } else {
          const { settle, refuse } = this.#waiting.get(data.number);
          this.#waiting.delete(data.number);
          if (data.error === undefined) settle(data.result);
          else refuse(new Error(data.error));
        }
      };
      this.#worker.onerror = (event) => report(`Python could not be loaded: ${event.message}`, true);
    });
  }

  /** Call a method of the session. Rejects with the message of what went wrong. */
  async ask(method, ...args) {
    await this.ready;
    this.#number += 1;
    const number = this.#number;
    return new Promise((settle, refuse) => {
      this.#waiting.set(number, { settle, refuse });
      this.#worker.postMessage({ number, method, arguments: JSON.stringify(args) });
    });
  }
}
