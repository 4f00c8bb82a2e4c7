// Everything that the server has sent, and the one connection to it.

import type { AbstractConnection, Handlers, Link } from "../connection";
import type {
  Answer, Block, Diagram, Hello, JsonValue, LocatedEvent, Mechanism, Parameter, PoseFrame, Problem,
  RunState, Samples, ServerEvent, Signal,
} from "../protocol"; // prettier-ignore

const MOST_EVENTS = 500;
const NOTE_SECONDS = 6;

const NO_RUN: RunState = {
  state: "none", time: 0, tick: 0, factor: 1, actual_factor: null, overruns: 0, lateness_p99: null,
  reason: "", overridden: [], devices: [],
}; // prettier-ignore

class Session {
  link = $state.raw<Link>({ state: "connecting" });
  hello = $state.raw<Hello | null>(null);
  diagram = $state.raw<Diagram | null>(null);
  signals = $state.raw<Signal[]>([]);
  aliases = $state.raw<Record<string, string>>({});
  /** Seconds between samples. */
  interval = $state(1e-3);
  parameters = $state.raw<Parameter[]>([]);
  inputs = $state.raw<Parameter[]>([]);
  mechanisms = $state.raw<Mechanism[]>([]);
  problems = $state.raw<Problem[]>([]);
  events = $state.raw<LocatedEvent[]>([]);
  run = $state.raw<RunState>(NO_RUN);
  /** Newest value of every element of every signal, ten times a second. */
  latest = $state.raw<Float64Array>(new Float64Array(0));
  /** Values of parameters and inputs that were set, over those of `parameters`. */
  values = $state<Record<string, JsonValue>>({});
  note = $state.raw<{ text: string; bad: boolean } | null>(null);
  /** Grows with each connection: what was subscribed has to be subscribed again. */
  epoch = $state(0);

  readonly bySignal = $derived(new Map(this.signals.map((signal) => [signal.path, signal])));
  readonly byParameter = $derived(
    new Map([...this.parameters, ...this.inputs].map((item) => [item.path, item])),
  );
  /** All times of a record; null while a run can go on. */
  readonly whole = $derived.by(() => {
    if (this.hello?.mode !== "result" || !(this.run.time > 0)) return null;
    return { from: this.run.begin ?? 0, to: this.run.time };
  });
  readonly isOpen = $derived(this.link.state === "open");

  onSamples: (samples: Samples) => void = () => {};
  onPoses: (frame: PoseFrame) => void = () => {};

  #connection: AbstractConnection | null = null;
  #noteTimer = 0;

  connect(make: (handlers: Handlers) => AbstractConnection): void {
    this.#connection = make({
      link: (link) => {
        this.link = link;
        if (link.state !== "open") return;
        this.epoch += 1;
        this.send("watch", { on: true });
      },
      event: (event) => this.#take(event),
      binary: (message) => {
        if (message.kind === "samples") this.onSamples(message);
        else if (message.kind === "poses") this.onPoses(message);
        else this.latest = message.values;
      },
    });
    this.#connection.open();
  }

  retryNow(): void {
    this.#connection?.open();
  }

  can(name: string): boolean {
    return this.isOpen && (this.hello?.can.includes(name) ?? false);
  }

  /** Send a request; what goes wrong is shown to the user. */
  async send(name: string, fields: Record<string, unknown> = {}): Promise<Answer | null> {
    try {
      return (await this.#connection?.request(name, fields)) ?? null;
    } catch (error) {
      if (this.isOpen) this.say((error as Error).message, true);
      return null;
    }
  }

  /** Show a line of text for some seconds. */
  say(text: string, bad = false): void {
    clearTimeout(this.#noteTimer);
    this.note = { text, bad };
    this.#noteTimer = window.setTimeout(() => (this.note = null), NOTE_SECONDS * 1000);
  }

  /** Where the wires of a picture lead to: the source of each target. */
  readonly #sources = $derived(
    new Map(this.diagram?.picture.wires.map((wire) => [wire.target, wire.source])),
  );

  /**
   * The signal of a path. It may be short, `ref` for `ref.y`, or a port on the border of a
   * subsystem, which has the signal of the wire on its other side.
   */
  findSignal(path: string, depth = 0): Signal | null {
    const found = this.bySignal.get(path) ?? this.bySignal.get(this.aliases[path] ?? "");
    if (found || depth > 32) return found ?? null;
    const source = this.#sources.get(path) ?? this.#sources.get(path.replace(/\.y$/, ""));
    return source === undefined || source === path ? null : this.findSignal(source, depth + 1);
  }

  /** Newest values of a signal; empty before the first. */
  valuesOf(signal: Signal): Float64Array {
    return this.latest.subarray(signal.element_offset, signal.element_offset + signal.width);
  }

  blockOf(path: string): Block | null {
    return this.diagram?.blocks[path] ?? null;
  }

  /** Present value of a parameter or an input. */
  valueOf(item: Parameter): JsonValue {
    return this.values[item.path] ?? item.value;
  }

  #take(message: ServerEvent): void {
    switch (message.event) {
      case "hello":
        this.hello = message;
        this.inputs = this.parameters = [];
        this.events = []; // the server tells those so far with each connection
        document.title = `${message.name} – biella studio`;
        break;
      case "diagram":
        this.diagram = message;
        break;
      case "signals":
        this.signals = message.list;
        this.aliases = message.aliases ?? {};
        this.interval = message.interval || 1e-3;
        this.latest = new Float64Array(0);
        break;
      case "parameters":
        this.parameters = message.list;
        this.inputs = message.inputs;
        this.values = {};
        break;
      case "mechanisms":
        this.mechanisms = message.list;
        break;
      case "problems":
        this.problems = message.list;
        break;
      case "state":
        // A new run begins: what was located in the one before is none of its events.
        if (message.time < this.run.time && message.tick < this.run.tick) this.events = [];
        this.run = { ...NO_RUN, ...message };
        break;
      case "changed":
        this.values[message.path] = message.value;
        break;
      case "events":
        this.events = [...this.events, ...message.list].slice(-MOST_EVENTS);
        break;
      case "reload":
        this.say("The file was saved: loaded again.");
        this.epoch += 1;
        break;
    }
  }
}

export const session = new Session();
