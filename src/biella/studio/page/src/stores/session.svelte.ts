// Everything that the server has sent, and the one connection to it.

import type { AbstractConnection, Handlers, Link } from "../connection";
import type {
  Answer, Block, Diagram, Editable, EffortFrame, FilePart, Hello, Journal, JsonValue, LocatedEvent, Mechanism,
  MeshFile, Parameter, PoseFrame, Problem, Runs, RunState, Samples, ServerEvent, Signal, Timing,
} from "../protocol"; // prettier-ignore

import { MOMENT } from "../protocol";

const MOST_EVENTS = 500;
const MOST_MARKS = 2000;
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
  journals = $state.raw<Journal[]>([]);
  problems = $state.raw<Problem[]>([]);
  editable = $state.raw<Editable>({ reason: "", undo: "", blocks: {}, parameters: {}, diagrams: [] });
  events = $state.raw<LocatedEvent[]>([]);
  run = $state.raw<RunState>(NO_RUN);
  timing = $state.raw<Timing | null>(null);
  /** Located events of the run that goes on, the newest ones, and how many there were. */
  marks = $state.raw<LocatedEvent[]>([]);
  markTotal = $state(0);
  /** What scopes mark. */
  readonly marked = $derived([...this.events, ...this.marks]);
  /** The runs of the session, or the files that are compared; null where there is but one. */
  runs = $state.raw<Runs | null>(null);
  /** Whether a recorded moment is shown in place of the newest values. */
  showsMoment = $state(false);
  /** Newest value of every element of every signal, ten times a second; or those of a moment. */
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
  onEfforts: (frame: EffortFrame) => void = () => {};
  onMesh: (file: MeshFile) => void = () => {};
  onValues: (run: number, time: number, values: Float64Array) => void = () => {};
  onFile: (part: FilePart) => void = () => {};

  #connection: AbstractConnection | null = null;
  #noteTimer = 0;
  #markedRun = -1;

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
        else if (message.kind === "file") this.onFile(message);
        else if (message.kind === "latest" && message.run) this.onValues(message.run, message.time, message.values);
        else if (message.kind === "mesh") this.onMesh(message);
        else if (this.showsMoment && !((message.flags ?? 0) & MOMENT)) return;
        else if (message.kind === "poses") this.onPoses(message);
        else if (message.kind === "efforts") this.onEfforts(message);
        else this.latest = message.values;
      },
    });
    this.#connection.open();
  }

  retryNow(): void {
    this.#connection?.open();
  }

  /** Whether the key of the server would let this page do more. */
  readonly isLocked = $derived(this.isOpen && (this.hello?.locked?.length ?? 0) > 0);
  readonly isKeyed = $derived(this.isOpen && (this.hello?.keyed ?? false));

  /** Show that this page has the key; what is wrong with it is thrown. */
  async unlock(key: Uint8Array | null): Promise<void> {
    await this.#connection?.unlock?.(key);
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
        this.marks = [];
        this.markTotal = 0;
        this.timing = null;
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
      case "journals":
        this.journals = message.list;
        break;
      case "problems":
        this.problems = message.list;
        break;
      case "editable":
        this.editable = message;
        break;
      case "state":
        // A new run begins: what was located in the one before is none of its events.
        // A branch has those of the run that it repeats.
        if (message.time < this.run.time && message.tick < this.run.tick) {
          const isBranch = (this.runs?.list.length ?? 0) > 1;
          this.events = isBranch ? this.events.filter((event) => event.time <= message.time) : [];
        }
        this.run = { ...NO_RUN, ...message };
        break;
      case "changed":
        this.values[message.path] = message.value;
        break;
      case "events":
        this.events = [...this.events, ...message.list].slice(-MOST_EVENTS);
        break;
      case "timing":
        this.timing = message;
        break;
      case "marks":
        if (message.run !== this.#markedRun) this.marks = [];
        this.#markedRun = message.run;
        this.markTotal = message.total;
        this.marks = [...this.marks, ...message.list].slice(-MOST_MARKS);
        break;
      case "access":
        if (this.hello) this.hello = { ...this.hello, can: message.can, locked: message.locked, keyed: message.keyed };
        break;
      case "runs":
        this.runs = message;
        break;
      case "reload":
        this.say("The file was saved: loaded again.");
        this.epoch += 1;
        break;
    }
  }
}

export const session = new Session();
