// The calculators of `draw.calculator`. Their formulas are those of the teaching library: tests compare the values.
(() => {
  "use strict";
  const INK = "#222222";
  const HATCHES = ["", "M-2 2L2 -2M0 8L8 0M6 10L10 6", "M2 0V8", "M0 2H8M2 0V8"];

  const range = (count) => [...Array(count).keys()];
  const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
  const rounded = (number, digits = 3) =>
    number.toLocaleString("en-US", number < 1000 ? { maximumSignificantDigits: digits } : { maximumFractionDigits: 0 });
  const counted = (number, thing) => `${rounded(number)} ${thing}${number === 1 ? "" : "s"}`;
  const inUnits = (units, below10 = 3) => (number) => {
    const [unit, size] = units.find((each) => number >= 0.9995 * each[1]) || units[units.length - 1];
    return `${rounded(number / size, number < 10 * size ? below10 : 3)}\u00a0${unit}`;
  };
  const inSeconds = inUnits([["s", 1], ["ms", 1e-3], ["µs", 1e-6]]);
  const inUnitsOfTime = inUnits([["days", 86400], ["h", 3600], ["min", 60], ["s", 1]], 2);
  const inTime = (seconds) => inUnitsOfTime(seconds).replace(/^1\u00a0days$/, "1\u00a0day");
  const inBytes = inUnits([["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]);
  const inPercent = (share) => `${rounded(100 * share, share < 0.1 ? 2 : 3)}\u00a0%`;
  const powers = (last) => range(Math.log2(last) + 1).map((power) => 2 ** power);
  // 1, 2, 5, 10, … times 10 to the power `first`.
  const decades = (first, count) =>
    range(count).map((place) => Number(`${[1, 2, 5][place % 3]}e${first + Math.floor(place / 3)}`));

  // An input is a slider over its values, or a menu of words; its values may depend on those of the others.
  // `calculate` gives numbers; `picture` makes bars or a schedule of them, and `says` a sentence.

  const allReduce = {
    inputs: {
      ranks: { label: "Ranks", values: () => [...range(15).map((rank) => rank + 2), 24, 32, 48, 64, 128, 256, 512, 1024], start: 16 },
      bytes: { label: "Array n", values: () => decades(3, 22), text: inBytes, start: 1e6 },
      latency: { label: "Latency α", values: () => decades(-6, 7), text: inSeconds, start: 5e-6 },
      bandwidth: { label: "Bandwidth", values: () => decades(7, 14), text: (value) => `${inBytes(value)}/s`, start: 1e9 },
    },
    calculate({ ranks: p, bytes: n, latency, bandwidth }) {
      const doublings = Math.floor(Math.log2(p)), core = 2 ** doublings, extra = core < p ? 1 : 0;
      const algorithms = {
        naive: [2 * (p - 1), 2 * (p - 1)],
        tree: [2 * (doublings + extra), 2 * (doublings + extra)],
        ring: [2 * (p - 1), (2 * (p - 1)) / p],
        "halving-doubling": [2 * doublings + 2 * extra, (2 * (core - 1)) / core + 2 * extra],
      };
      return Object.entries(algorithms).map(([name, [steps, factor]]) => (
        { name, steps, factor, parts: [steps * latency, (factor * n) / bandwidth] }
      ));
    },
    picture: (results) => ({
      keys: ["waiting (steps × α)", "moving bytes (× β)"],
      most: Math.min(sum(results[0].parts), 4 * Math.max(...results.slice(1).map(({ parts }) => sum(parts)))),
      rows: results.map(({ name, steps, factor, parts }) => ({
        name, parts, text: `${rounded(steps)} steps, ${rounded(factor)} n: ${inSeconds(sum(parts))}`,
      })),
    }),
    says(results, { ranks, bytes }) {
      const [best, next] = [...results].sort((one, other) => sum(one.parts) - sum(other.parts));
      const isTie = sum(next.parts) < 1.0005 * sum(best.parts), waits = inPercent(best.parts[0] / sum(best.parts));
      const names = isTie ? `fastest are ${best.name} and ${next.name}` : `fastest is ${best.name}`;
      return `${inBytes(bytes)} on ${rounded(ranks)} ranks: ${names} with ${inSeconds(sum(best.parts))}, of which ${waits} is latency.`;
    },
  };

  const memory = {
    inputs: {
      model: { label: "Model", values: (_, data) => Object.keys(data.models), start: "gpt-7.5b", isMenu: true },
      device: { label: "Memory of a device", values: () => [32e9, 80e9, 141e9], text: inBytes, start: 80e9, isMenu: true },
      tensor: { label: "Tensor parallel", values: () => powers(8), start: 1 },
      pipeline: {
        label: "Pipeline stages",
        values: ({ model }, { models: { [model]: [, layers] } }) =>
          range(64).map((stage) => stage + 1).filter((stages) => layers % stages === 0),
        start: 1,
      },
      replicas: { label: "Replicas", values: () => powers(1024), start: 64 },
    },
    calculate({ model, tensor: t, pipeline, replicas }, { models: { [model]: [parameters, layers, h, a, s] } }) {
      const here = parameters / (t * pipeline);
      const activations = layers * 2 * s * h + s * h * (10 + 24 / t + (5 * a * s) / (h * t));
      return range(4).map((zero) =>
        [[2, 3], [2, 2], [12, 1]].map(([bytes, from]) => (bytes * here) / (zero >= from ? replicas : 1)).concat(activations));
    },
    picture: (results, { device }) => ({
      keys: ["parameters", "gradients", "optimizer", "activations"],
      limit: device,
      most: Math.max(1.15 * device, Math.min(3 * device, ...results.slice(0, 1).map(sum))),
      rows: results.map((parts, zero) => ({
        name: zero ? `ZeRO ${zero}` : "no ZeRO", parts,
        text: `${inBytes(sum(parts))}, ${sum(parts) <= device ? "fits" : "does not fit"}`,
      })),
    }),
    says(results, { tensor, pipeline, replicas, device }) {
      const first = results.findIndex((parts) => sum(parts) <= device);
      const from = ["without ZeRO", "from ZeRO 1 on", "from ZeRO 2 on", "with ZeRO 3 only"][first];
      return `${tensor} × ${pipeline} × ${rounded(replicas)} = ${counted(tensor * pipeline * replicas, "device")} (tensor × pipeline × data). ` +
        (first < 0 ? `No stage of ZeRO fits into ${inBytes(device)}.` : `It fits into ${inBytes(device)} ${from}.`);
    },
  };

  const pipeline = {
    inputs: {
      schedule: { label: "Schedule", values: () => ["GPipe", "1F1B", "interleaved"], start: "1F1B", isMenu: true },
      stages: { label: "Stages", values: () => range(7).map((stage) => stage + 2), start: 4 },
      microBatches: {
        label: "Micro-batches",
        values: ({ schedule, stages }) =>
          range(32).map((place) => place + 1).filter((number) => schedule !== "interleaved" || number % stages === 0),
        start: 8,
      },
      chunks: { label: "Chunks per stage", values: ({ schedule }) => (schedule === "interleaved" ? [2, 3, 4] : [1]), start: 2 },
    },
    orders({ schedule, stages: p, microBatches: m, chunks: v }) {
      const passes = (isBackward) =>
        range(Math.ceil(m / p)).flatMap((group) => range(v).flatMap((chunk) => range(p).map((place) => (
          { isBackward, chunk: isBackward ? v - 1 - chunk : chunk, microBatch: group * p + place }
        )))).filter(({ microBatch }) => microBatch < m);
      const forward = passes(false), backward = passes(true);
      return range(p).map((stage) => {
        if (schedule === "GPipe") return [...forward, ...[...backward].reverse()];
        const following = p - stage - 1;
        const ahead = Math.min(forward.length, schedule === "1F1B" ? following : 2 * following + (v - 1) * p);
        const inTurn = forward.slice(ahead).flatMap((each, place) => [each, backward[place]]);
        return [...forward.slice(0, ahead), ...inTurn, ...backward.slice(forward.length - ahead)];
      });
    },
    // Each stage does its passes in order, each as soon as the pass that it needs has ended.
    calculate(values) {
      const { stages: p, chunks: v } = values;
      const waiting = this.orders(values), ended = {}, free = range(p).map(() => 0), works = [];
      while (sum(waiting.map((order) => order.length))) {
        waiting.forEach((order, stage) => {
          while (order.length) {
            const { isBackward, chunk, microBatch } = order[0];
            const piece = chunk * p + stage, before = isBackward ? piece + 1 : piece - 1;
            const ready = before < 0 || before === p * v ? 0 : ended[[isBackward, before, microBatch]];
            if (ready === undefined) break;
            const start = Math.max(free[stage], ready), end = start + (isBackward ? 2 : 1) / v;
            free[stage] = ended[[isBackward, piece, microBatch]] = end;
            works.push({ ...order.shift(), stage, start, end });
          }
        });
      }
      const seconds = Math.max(...free);
      const ofFirst = works.filter(({ stage }) => stage === 0).map(({ isBackward }) => (isBackward ? -1 : 1));
      const kept = Math.max(...ofFirst.map((_, place) => sum(ofFirst.slice(0, place + 1)))) / v;
      return { works, seconds, kept, bubble: 1 - sum(works.map(({ start, end }) => end - start)) / (p * seconds) };
    },
    says: ({ seconds, bubble, kept }, { schedule, stages, microBatches, chunks }) =>
      `${schedule} with ${counted(microBatches, "micro-batch").replace("chs", "ches")} on ${stages} stages takes ${rounded(seconds)} units of time, ` +
      `${inPercent(bubble)} of them bubble. Micro-batches whose activations stage 0 keeps: at most ${rounded(kept)}` +
      (chunks > 1 ? ` (a chunk counts 1/${chunks}).` : "."),
  };

  const amdahl = {
    inputs: {
      serial: {
        label: "Serial part", text: inPercent, start: 0.05,
        values: () => [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9],
      },
    },
    calculate: ({ serial }) => [1, 2, 4, 8, 16, 64, 256, 1024].map((devices) => {
      const parts = [serial, (1 - serial) / devices];
      return { devices, parts, speedup: 1 / sum(parts) };
    }),
    picture: (results) => ({
      keys: ["serial", "divided"],
      most: 1,
      rows: results.map(({ devices, parts, speedup }) => ({
        name: counted(devices, "device"), parts,
        text: devices === 1 ? "" : `${rounded(speedup)} × as fast, efficiency ${inPercent(speedup / devices)}`,
      })),
    }),
    says: (_, { serial }) => serial
      ? `With ${inPercent(serial)} serial, no number of devices is more than ${rounded(1 / serial)} × as fast as one.`
      : "With no serial part, the speed-up is the number of devices.",
  };

  const lost = (parts) => (sum(parts) < 1 ? inPercent(sum(parts)) : "all of it");
  const llama = (54 * 24) / 419; // hours between two faults, the job of chapter 13
  const saves = {
    inputs: {
      save: { label: "Save C", values: () => [1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600], text: inTime, start: 30 },
      faults: {
        label: "Fault every M", text: inTime, start: 3600 * llama,
        values: () => [0.5, 1, 2, llama, 6, 12, 24, 48, 96, 240, 720].map((hours) => 3600 * hours),
      },
      restart: { label: "Restart R", values: () => [0, 30, 60, 120, 300, 600, 1200, 3600], text: inTime, start: 600 },
      interval: {
        label: "Interval τ", text: inTime, start: 3600,
        values: () => [0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 120, 240, 480, 1440].map((minutes) => 60 * minutes),
      },
    },
    calculate({ save, faults, restart, interval }) {
      const best = Math.sqrt(2 * save * faults);
      return [["yours", interval], ["half the best", best / 2], ["best", best], ["twice the best", 2 * best]].map(([name, every]) => (
        { name, every, parts: [save / every, every / 2 / faults, restart / faults] }
      ));
    },
    picture: (results) => ({
      keys: ["saves C/τ", "repeated steps τ/2M", "restarts R/M"],
      most: Math.min(1, Math.max(...results.map(({ parts }) => sum(parts)))),
      rows: results.map(({ name, every, parts }) => ({
        name, parts, text: `every ${inTime(every)}: ${lost(parts)} lost`,
      })),
    }),
    says: ([yours, , best], { save, faults }) =>
      `With a save of ${inTime(save)} and a fault every ${inTime(faults)}, ` + (sum(best.parts) < 1
        ? `save every ${inTime(best.every)}: that loses ${lost(best.parts)} of the time, and yours ${lost(yours.parts)}.`
        : "the job does not progress, whatever the interval: restarts and repeated steps take all the time."),
  };

  const CALCULATORS = { "all-reduce": allReduce, memory, pipeline, amdahl, saves };

  // Pictures, as text of SVG

  const words = (text, x, y, more = "") => `<text x="${x}" y="${y}" font-size="13" fill="${INK}" ${more}>${text}</text>`;
  const box = (x, y, width, height, more) => `<rect x="${x}" y="${y}" width="${Math.max(0, width)}" height="${height}" ${more}/>`;
  const hatched = (id, ground, line, hatch) =>
    `<pattern id="${id}" width="8" height="8" patternUnits="userSpaceOnUse">${box(0, 0, 8, 8, `fill="${ground}"`)}` +
    `<path d="${hatch}" stroke="${line}"/></pattern>`;

  // A bar of parts under each row's name and text; what is longer than `most` is cut, and a line marks the limit.
  const bars = ({ keys, rows, most, limit }, width, id, { fills, lines }) => {
    const fill = (part) => `fill="url(#${id}-${part})" stroke="${lines[part]}"`;
    let x = 0, y = 18, drawn = keys.map((key, part) => hatched(`${id}-${part}`, fills[part], lines[part], HATCHES[part])).join("");
    keys.forEach((key, part) => {
      if (x + 24 + 7 * key.length > width) [x, y] = [0, y + 20];
      drawn += box(x + 1, y - 11, 13, 13, fill(part)) + words(key, x + 20, y);
      x += 36 + 7 * key.length;
    });
    const scale = (width - 12) / most, top = y + 12;
    rows.forEach(({ name, text, parts }, row) => {
      const at = top + 44 * row + 16;
      drawn += words(name, 1, at, 'font-weight="bold"') + words(text, width - 1, at, 'text-anchor="end"');
      const ends = parts.map((_, part) => 1 + scale * Math.min(1.02 * most, sum(parts.slice(0, part + 1))));
      drawn += ends.map((end, part) => box(ends[part - 1] || 1, at + 5, end - (ends[part - 1] || 1), 17, fill(part))).join("");
      if (sum(parts) > 1.02 * most) {
        drawn += `<path d="M${width - 24} ${at + 25}l8 -23M${width - 18} ${at + 25}l8 -23" stroke="white" stroke-width="3"/>`;
      }
    });
    const height = top + 44 * rows.length;
    const line = `stroke="${INK}" stroke-width="2" stroke-dasharray="5 3"`;
    if (limit) drawn += `<path d="M${1 + scale * limit} ${top + 19}V${height - 2}" ${line}/>`;
    return [drawn, height];
  };

  const schedule = ({ works, seconds }, { stages, chunks }, width, id, { fills, lines }) => {
    const left = 56, scale = (width - left - 2) / seconds, isNarrow = scale / chunks < 6; // pixels of a forward pass
    const passes = works.map(({ stage, chunk, isBackward, microBatch, start, end }) => {
      const x = left + start * scale, y = 2 + 30 * stage, wide = (end - start) * scale;
      const ground = isBackward
        ? `fill="${isNarrow ? lines[stage] : `url(#${id}-${stage})`}"`
        : `fill="${fills[stage]}" fill-opacity="${1 - (0.8 * chunk) / chunks}"`;
      const text = !isNarrow && wide > 8 + 7 * `${microBatch}`.length ? words(microBatch, x + wide / 2, y + 17, 'text-anchor="middle"') : "";
      const paper = text && isBackward ? box(x + wide / 2 - 9, y + 4, 18, 17, 'fill="white"') : "";
      return box(x, y, wide, 25, 'fill="white"') + box(x, y, wide, 25, `${ground} stroke="${isNarrow ? "none" : lines[stage]}"`) + paper + text;
    });
    const rows = range(stages).map((stage) =>
      hatched(`${id}-${stage}`, "white", lines[stage], HATCHES[1]) + words(`stage ${stage}`, 1, 19 + 30 * stage) +
      box(left, 2 + 30 * stage, width - left - 2, 25, 'fill="#DDDDDD"'));
    return [[...rows, ...passes].join(""), 30 * stages + 2];
  };

  const begin = (figure) => {
    figure.classList.add("is-ready");
    const calculator = CALCULATORS[figure.dataset.name], id = `calculator-${Math.random().toString(36).slice(2)}`;
    const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const values = Object.fromEntries(Object.entries(calculator.inputs).map(([name, { start }]) => [name, start]));
    const status = figure.querySelector(".status");
    const field = (name, { label, isMenu }) =>
      `<div><label for="${id}-${name}"><span>${label}</span>${isMenu ? "" : '<b aria-hidden="true"></b>'}</label>` +
      `${isMenu ? "<select" : '<input type="range" min="0" step="1"'} id="${id}-${name}" name="${name}">${isMenu ? "</select>" : ""}</div>`;
    const fields = Object.entries(calculator.inputs).map(([name, input]) => field(name, input));
    status.insertAdjacentHTML("beforebegin",
      `<div class="controls" role="group" aria-label="Calculator">${fields.join("")}</div><svg role="img"></svg>`);
    const svg = figure.querySelector("svg"), controls = figure.querySelector(".controls");

    // Each input gets the values that the others leave it, and keeps its own or the nearest.
    const arrange = () => Object.entries(calculator.inputs).forEach(([name, input]) => {
      const options = input.values(values, data), control = controls.querySelector(`[name="${name}"]`);
      const text = input.text || ((value) => (typeof value === "number" ? rounded(value) : value));
      const distance = (value) => (typeof value === "number" ? Math.abs(value - values[name]) : Number(value !== values[name]));
      const place = options.reduce((best, value, at) => (distance(value) < distance(options[best]) ? at : best), 0);
      values[name] = options[place];
      if (!input.isMenu) {
        Object.assign(control, { max: options.length - 1, disabled: options.length < 2 }).setAttribute("aria-valuetext", text(values[name]));
        controls.querySelector(`label[for="${id}-${name}"] b`).textContent = text(values[name]);
      } else if (!control.options.length) control.append(...options.map((value, at) => new Option(text(value), at)));
      control.value = place;
      control.onchange = control.oninput = () => { values[name] = options[control.value]; update(); };
    });
    const update = () => {
      arrange();
      const results = calculator.calculate(values, data), says = calculator.says(results, values);
      const picture = calculator.picture ? calculator.picture(results, values) : { rows: [] };
      const width = Math.min(680, figure.clientWidth || 680);
      const [drawn, height] = calculator.picture ? bars(picture, width, id, data) : schedule(results, values, width, id, data);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("width", width);
      svg.setAttribute("aria-label", [...picture.rows.map(({ name, text }) => `${name} ${text}`), says].join("; "));
      svg.innerHTML = drawn;
      if (status.textContent !== says) status.textContent = says;
    };
    figure.calculate = (chosen) => calculator.calculate({ ...values, ...chosen }, data);
    new ResizeObserver(() => Number(svg.getAttribute("width")) === Math.min(680, figure.clientWidth) || update()).observe(figure);
    update();
  };

  document.querySelectorAll("figure.distlab-calculator:not(.is-ready)").forEach(begin);
})();
