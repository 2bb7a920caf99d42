document.querySelectorAll('.distlab-quiz[data-quiz="IDENTIFIER"]').forEach(function (quiz) {
  if (quiz.dataset.ready) { return; }
  quiz.dataset.ready = "yes";
  var questions = Array.from(quiz.querySelectorAll("fieldset"));
  var score = quiz.querySelector(".score");
  function number(text, unit) {
    text = text.trim();
    text = text.toLowerCase().endsWith(unit.toLowerCase()) ? text.slice(0, text.length - unit.length) : text;
    text = text.replace(/[\s%]/g, "").replace("\u2212", "-");
    text = /^-?\d+,\d+$/.test(text) && !/^-?[1-9]\d{0,2},\d{3}$/.test(text) ? text.replace(",", ".") :
      text.replace(/,/g, "");
    return text === "" ? NaN : Number(text);
  }
  function judged(question) {
    var notes = Array.from(question.querySelectorAll("li"));
    var field = question.querySelector("input[type=text]");
    if (field) {
      var unit = field.nextSibling.textContent.trim();
      var value = number(field.value, unit);
      if (isNaN(value)) { return [null, unit ? "Enter a number, in " + unit + "." : "Enter a number."]; }
      var tolerance = Number(question.dataset.tolerance) + 1e-9;
      var note = notes.find(function (note) {
        var expected = Number(note.dataset.value);
        return Math.abs(value - expected) <= tolerance * Math.abs(expected);
      });
      if (!note) { return [false, "Not right. Think again, or open the answer."]; }
      var isRight = note.dataset.right === "yes";
      return [isRight, (isRight ? "Right. " : "Not right. ") + note.querySelector(".why").textContent];
    }
    var boxes = Array.from(question.querySelectorAll("input"));
    var chosen = boxes.filter(function (box) { return box.checked; });
    if (!chosen.length) { return [null, "Choose an answer first."]; }
    var wrong = boxes.findIndex(function (box, place) {
      return box.checked && notes[place].dataset.right !== "yes";
    });
    var rights = notes.filter(function (note) { return note.dataset.right === "yes"; });
    var found = boxes.filter(function (box, place) { return box.checked && rights.includes(notes[place]); }).length;
    var count = rights.length > 1 ? " You have chosen " + found + " of the " + rights.length + " right ones." : "";
    if (wrong >= 0) {
      var why = notes[wrong].querySelector(".why").textContent;
      return [false, "(" + "abcdefgh"[wrong] + ") is not right. " + why + count];
    }
    if (found < rights.length) { return [null, "Right so far." + count]; }
    return [true, "Right. " + rights.map(function (note) { return note.querySelector(".why").textContent; }).join(" ")];
  }
  questions.forEach(function (question) {
    var status = question.querySelector("[role=status]");
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "Check";
    button.setAttribute("aria-label", "Check question " + question.dataset.number);
    question.insertBefore(button, status);
    function check() {
      var result = judged(question);
      status.textContent = result[1];
      question.dataset.state = result[0] === null ? "" : result[0] ? "right" : "wrong";
      var count = questions.filter(function (each) { return each.dataset.state === "right"; }).length;
      score.textContent = count + " of " + questions.length + " right";
    }
    button.addEventListener("click", check);
    question.addEventListener("keydown", function (event) {
      if (event.key === "Enter" && event.target.tagName === "INPUT") { event.preventDefault(); check(); }
    });
  });
});
