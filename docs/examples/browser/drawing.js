// The curve of the loss, and digits with what the network takes them for.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 640;
const HEIGHT = 260;
const EDGE = { left: 44, right: 12, top: 12, bottom: 30 };

function element(name, attributes, words) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

class Curve {
  constructor(svg, steps, epoch) {
    this.svg = svg;
    this.steps = steps;
    this.x = (step) => EDGE.left + ((WIDTH - EDGE.left - EDGE.right) * step) / steps;
    this.y = (loss) => EDGE.top + ((HEIGHT - EDGE.top - EDGE.bottom) * (2.5 - Math.min(loss, 2.5))) / 2.5;
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.replaceChildren();
    for (const loss of [0, 0.5, 1, 1.5, 2, 2.5]) {
      const y = this.y(loss);
      svg.append(element("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y, y2: y, class: "grid" }));
      svg.append(element("text", { x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, loss.toFixed(1)));
    }
    for (let step = 0; step <= steps; step += 5 * epoch) {
      svg.append(element("text", { x: this.x(step), y: HEIGHT - 8, "text-anchor": step ? "middle" : "start" }, step));
    }
    this.line = svg.appendChild(element("polyline", { class: "loss" }));
  }

  show(losses) {
    const points = losses.map((loss, i) => `${this.x(i + 1).toFixed(1)},${this.y(loss).toFixed(1)}`);
    this.line.setAttribute("points", points.join(" "));
  }
}

// One test image: 8 by 8 squares of 0 to 16, and below it the class that has the highest score.
class Digit {
  constructor(images, labels, place) {
    this.place = place;
    this.label = labels[place];
    this.figure = document.createElement("figure");
    const canvas = this.figure.appendChild(document.createElement("canvas"));
    canvas.width = canvas.height = 8;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `a handwritten ${this.label}`);
    this.caption = this.figure.appendChild(document.createElement("figcaption"));
    const pixels = new ImageData(8, 8);
    for (let i = 0; i < 64; i++) pixels.data.set([0, 0, 0, (images[64 * place + i] * 255) / 16], 4 * i);
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }

  show(classes) {
    const found = classes[this.place];
    this.caption.textContent = found;
    this.figure.className = found === this.label ? "right" : "wrong";
  }
}
