// SPDX-License-Identifier: MIT OR Apache-2.0
// Thumbnails of an uploaded picture in three sizes and two formats, as a web shop makes them.
const http = require("http");
const sharp = require("sharp");

sharp.cache(false);

async function thumbnails(picture) {
  const made = [1200, 480, 120].flatMap((width) => [
    sharp(picture).resize(width).jpeg({ quality: 80 }).toBuffer(),
    sharp(picture).resize(width).rotate(90).webp({ quality: 70, effort: 1 }).toBuffer(),
  ]);
  return (await Promise.all(made)).reduce((bytes, buffer) => bytes + buffer.length, 0);
}

async function main() {
  const noise = { type: "gaussian", mean: 128, sigma: 30 };
  const size = { width: 2400, height: 1600, channels: 3 };
  const picture = await sharp({ create: { ...size, background: "white", noise } }).jpeg().toBuffer();
  const server = http.createServer(async (request, response) => {
    try {
      response.end(`made ${await thumbnails(picture) > 1000}    \n`);
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  server.listen(Number(process.argv[2]), "127.0.0.1");
  process.on("SIGTERM", () => process.exit(0));
}

main();
