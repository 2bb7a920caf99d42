// The steps of an all-reduce on ranks in a circle, from the data in the figure that `draw.play` displays.
(() => {
  "use strict";
  const TRAVEL = 1100, PAUSE = 900; // milliseconds
  const QUIET = "#767676", INK = "#222222";
  const wantsNoMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const shape = (name, attributes = {}, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  };
  const words = (text, x, y, size, more = {}) =>
    shape("text", { x, y, "font-size": size, "text-anchor": "middle", fill: INK, ...more }, text);
  const moveTo = (group, [x, y]) => group.setAttribute("transform", `translate(${x} ${y})`);

  // Where everything is on that many ranks in a picture of at most that width, in pixels around its centre: ranks are on
  // an ellipse or, where that is too narrow for letters to be read, in two columns, down and up again. `place` is that
  // of a rank, and between two ranks of what travels.
  const layout = (ranks, room) => {
    const columns = ranks > 4 ? 2 : 1;
    const isNarrow = room < (ranks > 4 ? 640 : 480);
    const widest = isNarrow ? room / 2 - 12 : Math.min(room / 4, 190);
    const width = Math.min(columns === 1 ? 28 : 13, ((widest - 10) / ranks - 4) / columns);
    const segment = { width, height: columns === 1 ? 17 : 15, text: Math.min(13, 1.3 * width) };
    const chunk = { width: columns * width, height: Math.ceil(ranks / columns) * segment.height };
    const pitch = chunk.width + 4;
    const node = { width: ranks * pitch + 10, height: chunk.height + 46 };
    const corner = (number) => [7 - node.width / 2 + number * pitch, 38 - node.height / 2];
    const rows = Math.ceil(ranks / 2), down = node.height + 18;
    const spot = (rank) => {
      const isRight = rank < rows, row = isRight ? rank - (rows - 1) / 2 : ranks - 1 - rank - (ranks - rows - 1) / 2;
      return [(isRight ? 0.5 : -0.5) * (room - node.width - 4), row * down + 16];
    };
    const radius = [Math.min(300, (room - node.width) / 2 - 10), ranks === 2 ? 0 : ranks > 4 ? 172 : 140];
    const place = (at) => {
      const angle = (ranks === 2 ? 1 : -0.5) * Math.PI + (2 * Math.PI * at) / ranks, rank = Math.floor(at + ranks);
      if (!isNarrow) return [radius[0] * Math.cos(angle), radius[1] * Math.sin(angle)];
      const end = spot((rank + 1) % ranks);
      return spot(rank % ranks).map((value, axis) => value + (at + ranks - rank) * (end[axis] - value));
    };
    const height = isNarrow ? rows * down + 32 : 2 * radius[1] + node.height + (ranks === 2 ? 70 : 10);
    const size = [isNarrow ? room : 2 * radius[0] + node.width + 10, height];
    return { columns, segment, chunk, node, place, corner, size, title: isNarrow || ranks === 2 ? 20 - height / 2 : 6 };
  };

  class Player {
    constructor(figure) {
      figure.classList.add("is-ready");
      this.data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
      this.svg = figure.querySelector("svg");
      const button = (textContent, action) => {
        const made = element("button", { type: "button", textContent });
        made.addEventListener("click", action);
        return made;
      };
      this.back = button("Step back", () => this.stopAnd(() => this.show(this.step - 1)));
      this.play = button("Play", () => (this.isPlaying ? this.stopAnd(() => this.show(this.step)) : this.start()));
      this.on = button("Step on", () => {
        const step = this.step + (this.moving ? 1 : 0); // pressed on the way, it ends the step that has begun
        this.stopAnd(() => { this.show(step); this.move(); });
      });
      this.slider = element("input", { type: "range", min: 0, step: 1 });
      this.slider.setAttribute("aria-label", "Step");
      this.slider.addEventListener("input", () => this.stopAnd(() => this.show(Number(this.slider.value))));
      const option = (ranks) => element("option", { value: ranks, textContent: ranks });
      this.menu = element("select", {}, ...Object.keys(this.data.runs).map(option));
      this.menu.value = figure.dataset.ranks;
      this.menu.addEventListener("change", () => this.stopAnd(() => this.begin()));
      const label = element("label", {}, "Ranks ", this.menu);
      this.controls = element("div", { className: "buttons" }, this.play, this.back, this.on, this.slider, label);
      this.controls.setAttribute("role", "group");
      this.controls.setAttribute("aria-label", "Player");
      this.status = element("p", { className: "status" });
      this.status.setAttribute("role", "status");
      this.svg.before(this.controls);
      this.svg.after(this.status);
      this.begin();
      const resized = () => this.controls.clientWidth === this.room || this.stopAnd(() => this.show(this.step));
      new ResizeObserver(resized).observe(figure);
    }

    begin() {
      this.ranks = Number(this.menu.value);
      this.run = this.data.runs[this.ranks];
      this.last = this.run.sent.length;
      this.all = 2 ** this.ranks - 1;
      this.slider.max = this.last;
      this.show(0);
    }

    // A chunk with the shares that are in it, each at its own place; a thick frame is a finished one, which has all: where
    // there are many, without their numbers.
    drawChunk(shares, number) {
      const { columns, segment, chunk } = this.at;
      const group = shape("g", {}, shape("rect", { ...chunk, fill: "white" })), isDone = shares === this.all;
      for (let rank = 0; rank < this.ranks; rank += 1) {
        if (!(shares & (1 << rank))) continue;
        const x = (rank % columns) * segment.width, y = Math.floor(rank / columns) * segment.height;
        const { width, height } = segment;
        group.append(shape("rect", { x, y, width, height, fill: this.data.colours[rank], stroke: "white" }));
        if (!isDone || this.ranks < 6) group.append(words(rank, x + width / 2, y + height / 2 + 0.36 * segment.text, segment.text));
      }
      group.append(shape("rect", { ...chunk, fill: "none", stroke: isDone ? INK : QUIET, "stroke-width": isDone ? 2.6 : 0.8 }));
      group.dataset.chunk = number;
      return group;
    }

    drawRing() {
      const { place } = this.at;
      const points = [...Array(16 * this.ranks + 1).keys()].map((part) => place(part / 16)).join(" ");
      const parts = [shape("polyline", { points, fill: "none", stroke: "#BBBBBB", "stroke-width": 2 })];
      for (let rank = 0; this.ranks > 2 && rank < this.ranks; rank += 1) {
        const [before, after] = [place(rank + 0.49), place(rank + 0.51)];
        const turned = (Math.atan2(after[1] - before[1], after[0] - before[0]) * 180) / Math.PI;
        const transform = `translate(${place(rank + 0.5)}) rotate(${turned})`;
        parts.push(shape("path", { d: "M-7 -7L9 0L-7 7Z", fill: "#999999", transform }));
      }
      return parts;
    }

    drawRank(rank) {
      const { node, chunk, corner } = this.at;
      const { width, height } = node;
      const frame = { x: -width / 2, y: -height / 2, width, height, rx: 6, fill: "white", stroke: this.data.lines[rank] };
      const group = shape("g", { class: "rank" }, shape("rect", { ...frame, "stroke-width": 2 }));
      const got = (this.run.sent[this.step - 1] || []).filter(([, to]) => to === rank).flatMap(([, , chunks]) => chunks);
      this.run.held[this.step][rank].forEach((shares, number) => {
        const [x, y] = corner(number);
        const isNew = got.includes(number);
        const style = { fill: isNew ? INK : QUIET, "font-weight": isNew ? "bold" : "normal" };
        group.append(words(isNew ? `▾${number}` : number, x + chunk.width / 2, y - 5, 13, style));
        const drawn = this.drawChunk(shares, number);
        moveTo(drawn, [x, y]);
        group.append(drawn);
      });
      moveTo(group, this.at.place(rank));
      return group;
    }

    // The names are above the chunks that travel.
    drawName(rank) {
      const style = { "font-weight": "bold", stroke: "white", "stroke-width": 5, "paint-order": "stroke" };
      const name = words(`rank ${rank}`, 0, 16 - this.at.node.height / 2, 14, style);
      moveTo(name, this.at.place(rank));
      return name;
    }

    show(step) {
      this.step = Math.max(0, Math.min(step, this.last));
      this.room = this.controls.clientWidth;
      this.at = layout(this.ranks, Math.min(this.room || 760, 860));
      const [width, height] = this.at.size;
      this.svg.setAttribute("viewBox", `${-width / 2} ${-height / 2} ${width} ${height}`);
      this.svg.setAttribute("width", width);
      const ranks = [...Array(this.ranks).keys()].map((rank) => this.drawRank(rank));
      this.names = shape("g", {}, ...ranks.map((_, rank) => this.drawName(rank)));
      const title = this.step ? `after step ${this.step} of ${this.last}` : "before the first step";
      this.title = words(title, 0, this.at.title, 17, { "font-weight": "bold" });
      this.svg.setAttribute("aria-label", `${this.ranks} ranks in a circle, ${title}. ${this.whatIsHeld(this.step)}`);
      this.svg.replaceChildren(...this.drawRing(), this.title, ...ranks, this.names);
      this.slider.value = this.step;
      this.slider.setAttribute("aria-valuetext", `step ${this.step} of ${this.last}`);
      this.say(this.step);
      this.back.disabled = this.step === 0;
      this.on.disabled = this.step === this.last;
    }

    whatIsHeld(step) {
      const done = this.run.held[step].map((chunks) => chunks.filter((shares) => shares === this.all).length);
      const all = done.map((number, rank) => `rank ${rank} has ${number}`).join(", ");
      if (new Set(done).size > 1) return `Finished chunks of ${this.ranks}: ${all}.`;
      if (!done[0]) return "No rank has a finished chunk.";
      return `Each rank has ${done[0]} finished ${done[0] === 1 ? "chunk" : "chunks"} of ${this.ranks}.`;
    }

    // What happens in a step; said once, although it is asked for when the chunks set out and when they have arrived.
    say(step) {
      const text = this.inWords(step);
      if (this.status.textContent !== text) this.status.textContent = text;
    }

    inWords(step) {
      if (step === 0) return `Before the first step: each rank has ${this.ranks} chunks with its own share; ${this.last} steps follow.`;
      const messages = this.run.sent[step - 1].map(([source, to, chunks], place) => {
        if (place && this.ranks > 4) return `${source} sends ${chunks.join(", ")} to ${to}`; // short enough for a telephone
        const isDone = chunks.every((number) => this.run.held[step - 1][source][number] === this.all);
        const what = chunks.length > 1 ? `chunks ${chunks.join(", ")}` : `chunk ${chunks[0]}`;
        return `rank ${source} sends ${isDone ? "finished " : ""}${what} to rank ${to}`;
      });
      return `Step ${step} of ${this.last}: ${messages.join("; ")}. ${this.whatIsHeld(step)}`;
    }

    // One step on: the chunks travel first, along the circle to a neighbour, unless the reader has asked for no motion.
    async move() {
      if (this.step >= this.last) return;
      const moving = (this.moving = {});
      if (!wantsNoMotion.matches) {
        this.title.textContent = `step ${this.step + 1} of ${this.last}`;
        this.say(this.step + 1);
        await this.travel(moving);
      }
      if (this.moving !== moving) return;
      this.moving = null;
      this.show(this.step + 1);
    }

    travel(moving) {
      const { place, corner } = this.at;
      const ways = this.run.sent[this.step].flatMap(([source, to, chunks]) => {
        const distance = (to - source + this.ranks) % this.ranks;
        const [from, end] = [place(source), place(to)];
        const centre = (share) => {
          if (distance === 1 || distance === this.ranks - 1) return place(source + (distance === 1 ? share : -share));
          return from.map((value, axis) => value + share * (end[axis] - value));
        };
        return chunks.map((number) => {
          const group = this.drawChunk(this.run.held[this.step][source][number], number);
          const offset = corner(number);
          this.names.before(group);
          return (share) => moveTo(group, centre(share).map((value, axis) => value + offset[axis]));
        });
      });
      return new Promise((finish) => {
        let begin = null;
        const frame = (now) => {
          begin ??= now;
          const share = Math.min((now - begin) / TRAVEL, 1);
          ways.forEach((way) => way(share * share * (3 - 2 * share)));
          if (share < 1 && this.moving === moving && this.svg.isConnected) requestAnimationFrame(frame);
          else finish();
        };
        requestAnimationFrame(frame);
      });
    }

    async start() {
      if (this.step === this.last) this.show(0);
      const playing = (this.isPlaying = {});
      this.play.textContent = "Stop";
      while (this.isPlaying === playing && this.step < this.last && this.svg.isConnected) {
        await this.move();
        await new Promise((finish) => setTimeout(finish, wantsNoMotion.matches ? TRAVEL + PAUSE : PAUSE));
      }
      if (this.isPlaying === playing) this.stopAnd(() => {});
    }

    stopAnd(action) {
      this.isPlaying = this.moving = null;
      this.play.textContent = "Play";
      action();
    }
  }

  document.querySelectorAll("figure.distlab-player:not(.is-ready)").forEach((figure) => new Player(figure));
})();
