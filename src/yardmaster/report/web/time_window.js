// The stretch of time that is shown: one for all drawings that move together.

/** A stretch of time inside a longer one, and the moment that is pointed at. */
export class TimeWindow {
  /** @param {number} first @param {number} last seconds; the whole that can be shown */
  constructor(first, last) {
    this.first = first;
    this.last = last > first ? last : first + 1;
    this.from = this.first;
    this.to = this.last;
    /** @type {number | null} the moment that is pointed at */
    this.cursor = null;
    /** @type {Set<(what: "range" | "cursor") => void>} */
    this.watchers = new Set();
  }

  get span() {
    return this.to - this.from;
  }

  /**
   * Call back when the window or the cursor moves.
   * @param {(what: "range" | "cursor") => void} watcher
   * @returns {() => void} stops it
   */
  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** @param {number} from @param {number} to */
  set(from, to) {
    const whole = this.last - this.first;
    const span = Math.min(Math.max(to - from, Math.min(whole * 1e-7, 0.01)), whole);
    const start = Math.min(Math.max(from, this.first), this.last - span);
    if (start === this.from && start + span === this.to) return;
    this.from = start;
    this.to = start + span;
    this.tell("range");
  }

  /**
   * Show a shorter or longer stretch; the moment `at` stays where it is.
   * @param {number} factor below 1: closer
   * @param {number} [at]
   */
  zoom(factor, at = (this.from + this.to) / 2) {
    const span = Math.min(this.span * factor, this.last - this.first);
    const share = (at - this.from) / this.span;
    this.set(at - share * span, at - share * span + span);
  }

  /** @param {number} share of the stretch that is shown; positive: later */
  pan(share) {
    const by = this.span * share;
    this.set(this.from + by, this.to + by);
  }

  reset() {
    this.set(this.first, this.last);
  }

  /**
   * Bring a stretch into view: as close as before if it can be seen then, else closer.
   * @param {number} from @param {number} to
   */
  reveal(from, to) {
    const length = to - from;
    const isTiny = length * 150 < this.span;
    if (!isTiny && from >= this.from && to <= this.to) return;
    const whole = this.last - this.first;
    const span = length > this.span ? length * 1.3 : isTiny ? Math.max(length * 30, whole * 1e-5) : this.span;
    const middle = (from + to) / 2;
    this.set(middle - span / 2, middle + span / 2);
  }

  /** @param {number | null} time_s */
  point(time_s) {
    if (time_s === this.cursor) return;
    this.cursor = time_s;
    this.tell("cursor");
  }

  /** @param {"range" | "cursor"} what */
  tell(what) {
    for (const watcher of this.watchers) watcher(what);
  }
}
