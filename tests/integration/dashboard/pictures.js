/* A picture made small, and how far two small pictures are apart. */
({
  small: async ([address, width]) => {
    const picture = Object.assign(new Image(), { src: address });
    await picture.decode();
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = Math.round((picture.height * width) / picture.width);
    const pen = canvas.getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  },
  apart: async ([one, other]) => {
    const read = async (address) => {
      const picture = Object.assign(new Image(), { src: address });
      await picture.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [picture.width, picture.height];
      const pen = canvas.getContext("2d");
      pen.drawImage(picture, 0, 0);
      return pen.getImageData(0, 0, canvas.width, canvas.height);
    };
    const [a, b] = [await read(one), await read(other)];
    if (a.width !== b.width || Math.abs(a.height - b.height) > 1) { return { size: `${a.width}x${a.height} / ${b.width}x${b.height}`, mean: 255, far: 1 }; }
    let sum = 0, far = 0;
    const length = Math.min(a.data.length, b.data.length);
    for (let i = 0; i < length; i += 4) {
      const most = Math.max(...[0, 1, 2].map((k) => Math.abs(a.data[i + k] - b.data[i + k])));
      sum += most;
      far += most > 48 ? 1 : 0;
    }
    return { size: `${a.width}x${a.height}`, mean: sum / (length / 4), far: far / (length / 4) };
  },
  letters: () => {
    const pen = document.createElement("canvas").getContext("2d");
    const family = getComputedStyle(document.body).fontFamily;
    return ["Hamburgefonstiv 0123456789", "模型算力利用率卡时"].map((words) => { pen.font = `100px ${family}`; return Math.round(pen.measureText(words).width); }).join("/");
  },
})
