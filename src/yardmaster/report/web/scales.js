// Axes: where ticks stand and what they say.

import { figure } from "./words.js";

const TIME_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
  1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000,
  17280000, 43200000, 86400000,
];

/**
 * A linear scale.
 * @param {[number, number]} domain @param {[number, number]} range
 * @returns {(value: number) => number}
 */
export function linear([low, high], [from, to]) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

/**
 * Round values inside a range, about as many as asked for.
 * @param {number} low @param {number} high @param {number} [wanted]
 */
export function ticks(low, high, wanted = 5) {
  const raw = (high - low) / Math.max(wanted, 1);
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const steps = [0.2, 0.5, 1, 2, 5, 10].map((n) => n * power);
  let place = steps.findIndex((each) => each >= raw);
  if (place < 0) place = steps.length - 1;
  // One tick says nothing of how long the axis is.
  while (place > 0 && between(low, high, steps[place]).length < Math.min(wanted, 3)) place -= 1;
  return between(low, high, steps[place]);
}

/**
 * Round times inside a range, in seconds.
 * @param {number} low @param {number} high @param {number} [wanted]
 */
export function timeTicks(low, high, wanted = 8) {
  const raw = (high - low) / Math.max(wanted, 1);
  const step = TIME_STEPS.find((each) => each >= raw) ?? ticks(0, high - low, wanted)[1];
  return between(low, high, step);
}

/** @param {number} low @param {number} high @param {number} step */
function between(low, high, step) {
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) {
    found.push(Number((n * step).toPrecision(12)));
  }
  return found;
}

/**
 * A moment as date and time, where the date of second 0 is known: "Mon 6 Apr 03:00".
 * @param {string} begins local date and time of second 0, "" if unknown
 * @param {number} time_s @param {number} step_s
 */
export function calendar(begins, time_s, step_s) {
  const zero = Date.parse(`${begins}Z`);
  if (!begins || Number.isNaN(zero)) return clock(time_s, step_s);
  const moment = new Date(zero + time_s * 1000);
  const time = moment.toISOString().slice(11, step_s < 60 ? 19 : 16);
  const options = /** @type {Intl.DateTimeFormatOptions} */ ({ timeZone: "UTC", weekday: step_s < 864_000 ? "short" : undefined, day: "numeric", month: "short" });
  const day = new Intl.DateTimeFormat("en-GB", options).format(moment).replace(",", "");
  if (step_s >= 86_400) return day;
  return time.startsWith("00:00") && step_s >= 3600 ? day : step_s >= 3600 ? time : `${day} ${time}`;
}

/**
 * A moment to the second in a sentence: date and time where the workload has dates, else its clock.
 * @param {string} begins local date and time of second 0, "" if unknown
 * @param {number} time_s
 */
export function moment(begins, time_s) {
  return calendar(begins, time_s, 1);
}

/**
 * A moment to the second with the time since second 0 in brackets, so that it can be found on any axis.
 * @param {string} begins @param {number} time_s
 */
export function fullMoment(begins, time_s) {
  const [date, since] = [moment(begins, time_s), clock(time_s, 1)];
  return date === since ? since : `${date} (${since})`;
}

/**
 * A moment on the workload's clock, as fine as the step between ticks asks for: "2 d 03:00".
 * @param {number} time_s @param {number} step_s
 */
export function clock(time_s, step_s) {
  const sign = time_s < 0 ? "−" : "";
  const whole = Math.abs(time_s);
  if (step_s < 1) return `${sign}${figure(whole)} s`;
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor((whole % 86_400) / 3_600);
  const minutes = Math.floor((whole % 3_600) / 60);
  const seconds = Math.floor(whole % 60);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  if (step_s >= 86_400) return `${sign}${days} d`;
  const fine = step_s < 60 ? `:${two(seconds)}` : "";
  return `${sign}${days ? `${days} d ` : ""}${two(hours)}:${two(minutes)}${fine}`;
}
