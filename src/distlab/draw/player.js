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

  // Where everything is on that many ranks, in pixels around the centre of the circle; a place is an angle.
  const layout = (ranks) => {
    const columns = ranks > 4 ? 2 : 1;
    const segment = columns === 1 ? { width: 28, height: 17, text: 12 } : { width: ranks > 6 ? 11 : 14, height: 14, text: 10 };
    const chunk = { width: columns * segment.width, height: Math.ceil(ranks / columns) * segment.height };
    const pitch = chunk.width + 5;
    const node = { width: ranks * pitch + 11, height: chunk.height + 46 };
    const radius = ranks > 6 ? [390, 235] : ranks > 4 ? [345, 235] : [270, 190];
    const start = ranks === 2 ? Math.PI : -Math.PI / 2;
    const angle = (rank) => start + (2 * Math.PI * rank) / ranks;
    const place = (at) => [radius[0] * Math.cos(at), radius[1] * Math.sin(at)];
    const corner = (number) => [8 - node.width / 2 + number * pitch, 38 - node.height / 2];
    const size = [2 * radius[0] + node.width + 20, ranks === 2 ? 190 : 2 * radius[1] + node.height + 20];
    return { columns, segment, chunk, node, radius, angle, place, corner, size };
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
      const controls = element("div", { className: "controls" }, this.play, this.back, this.on, this.slider, label);
      controls.setAttribute("role", "group");
      controls.setAttribute("aria-label", "Player");
      this.status = element("p", { className: "status" });
      this.status.setAttribute("role", "status");
      this.svg.before(controls);
      this.svg.after(this.status);
      this.begin();
    }

    begin() {
      this.ranks = Number(this.menu.value);
      this.run = this.data.runs[this.ranks];
      this.last = this.run.sent.length;
      this.all = 2 ** this.ranks - 1;
      this.at = layout(this.ranks);
      const [width, height] = this.at.size;
      this.svg.setAttribute("viewBox", `${-width / 2} ${-height / 2} ${width} ${height}`);
      this.svg.setAttribute("width", width);
      this.slider.max = this.last;
      this.show(0);
    }

    // A chunk with the shares that are in it, each at its own place; a thick frame is a finished one.
    drawChunk(shares, number) {
      const { columns, segment, chunk } = this.at;
      const group = shape("g", {}, shape("rect", { ...chunk, fill: "white" }));
      for (let rank = 0; rank < this.ranks; rank += 1) {
        if (!(shares & (1 << rank))) continue;
        const x = (rank % columns) * segment.width, y = Math.floor(rank / columns) * segment.height;
        const { width, height } = segment;
        group.append(shape("rect", { x, y, width, height, fill: this.data.colours[rank], stroke: "white" }));
        group.append(words(rank, x + width / 2, y + 0.78 * height, segment.text));
      }
      const isDone = shares === this.all;
      group.append(shape("rect", { ...chunk, fill: "none", stroke: isDone ? INK : QUIET, "stroke-width": isDone ? 2.6 : 0.8 }));
      group.dataset.chunk = number;
      return group;
    }

    drawRing() {
      const [rx, ry] = this.at.radius;
      const parts = [];
      if (this.ranks > 2) parts.push(shape("ellipse", { rx, ry, fill: "none", stroke: "#BBBBBB", "stroke-width": 2 }));
      else parts.push(shape("line", { x1: -rx, x2: rx, stroke: "#BBBBBB", "stroke-width": 2 }));
      for (let rank = 0; this.ranks > 2 && rank < this.ranks; rank += 1) {
        const angle = this.at.angle(rank + 0.5);
        const [x, y] = this.at.place(angle);
        const turned = (Math.atan2(ry * Math.cos(angle), -rx * Math.sin(angle)) * 180) / Math.PI;
        const transform = `translate(${x} ${y}) rotate(${turned})`;
        parts.push(shape("path", { d: "M-7 -7L9 0L-7 7Z", fill: "#999999", transform }));
      }
      return parts;
    }

    drawRank(rank) {
      const { node, chunk, corner } = this.at;
      const { width, height } = node;
      const frame = { x: -width / 2, y: -height / 2, width, height, rx: 6, fill: "white", stroke: this.data.lines[rank] };
      const group = shape("g", { class: "rank" }, shape("rect", { ...frame, "stroke-width": 2 }));
      group.append(words(`rank ${rank}`, 0, 16 - height / 2, 13, { "font-weight": "bold" }));
      const got = (this.run.sent[this.step - 1] || []).filter(([, to]) => to === rank).flatMap(([, , chunks]) => chunks);
      this.run.held[this.step][rank].forEach((shares, number) => {
        const [x, y] = corner(number);
        const isNew = got.includes(number);
        const style = { fill: isNew ? INK : QUIET, "font-weight": isNew ? "bold" : "normal" };
        group.append(words(isNew ? `▾${number}` : number, x + chunk.width / 2, y - 5, 11, style));
        const drawn = this.drawChunk(shares, number);
        moveTo(drawn, [x, y]);
        group.append(drawn);
      });
      moveTo(group, this.at.place(this.at.angle(rank)));
      return group;
    }

    show(step) {
      this.step = Math.max(0, Math.min(step, this.last));
      const ranks = [...Array(this.ranks).keys()].map((rank) => this.drawRank(rank));
      const title = this.step ? `after step ${this.step} of ${this.last}` : "before the first step";
      this.title = words(title, 0, this.ranks === 2 ? -70 : 0, 17, { "font-weight": "bold" });
      this.svg.setAttribute("aria-label", `${this.ranks} ranks in a circle, ${title}. ${this.whatIsHeld(this.step)}`);
      this.svg.replaceChildren(...this.drawRing(), this.title, ...ranks);
      this.slider.value = this.step;
      this.slider.setAttribute("aria-valuetext", `step ${this.step} of ${this.last}`);
      this.say(this.step);
      this.back.disabled = this.step === 0;
      this.on.disabled = this.step === this.last;
    }

    whatIsHeld(step) {
      const done = this.run.held[step].map((chunks) => chunks.filter((shares) => shares === this.all).length);
      return `Finished chunks on ranks 0 to ${this.ranks - 1}: ${done.join(", ")}.`;
    }

    // What happens in a step; said once, although it is asked for when the chunks set out and when they have arrived.
    say(step) {
      const text = this.inWords(step);
      if (this.status.textContent !== text) this.status.textContent = text;
    }

    inWords(step) {
      if (step === 0) return `Before the first step: each rank has ${this.ranks} chunks with its own share; ${this.last} steps follow.`;
      const messages = this.run.sent[step - 1].map(([source, to, chunks]) => {
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
      const { angle, place, corner } = this.at;
      const ways = this.run.sent[this.step].flatMap(([source, to, chunks]) => {
        const turn = (to - source + this.ranks) % this.ranks === 1 ? 1 : -1;
        const isNeighbour = [1, this.ranks - 1].includes((to - source + this.ranks) % this.ranks);
        const [from, end] = [angle(source), angle(to)].map(place);
        const centre = (share) => {
          if (isNeighbour && this.ranks > 2) return place(angle(source) + (turn * share * 2 * Math.PI) / this.ranks);
          return from.map((value, axis) => value + share * (end[axis] - value));
        };
        return chunks.map((number) => {
          const group = this.drawChunk(this.run.held[this.step][source][number], number);
          const offset = corner(number);
          this.svg.append(group);
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
