// Opens dashboards in Chromium, and saves Grafana's responses to the panels' queries and a screenshot of each dashboard.
// usage: node browser.js URL FROM_MS TO_MS FOLDER UID:HEIGHT...   (FOLDER/UID.json and FOLDER/UID.png)
const fs = require('fs');
const os = require('os');
const path = require('path');
const puppeteer = require('puppeteer-core');

const WIDTH = 1500, QUIET_MS = 3000, TIMEOUT_MS = 180000;

async function main() {
  const [url, from, to, folder, ...dashboards] = process.argv.slice(2);
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'casstat-browser-'));
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    headless: 'new',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    userDataDir: profile,
    protocolTimeout: TIMEOUT_MS,
  });
  try {
    for (const dashboard of dashboards) {
      const [uid, height] = dashboard.split(':');
      await open(browser, `${url}/d/${uid}/x?kiosk&from=${from}&to=${to}&refresh=`, uid, Number(height), folder);
    }
  } finally {
    await browser.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

async function open(browser, url, uid, height, folder) {
  const page = await browser.newPage();
  const answers = [], problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('response', async (response) => {
    if (!response.url().includes('/api/ds/query')) return;
    const headers = response.request().headers();
    try {
      answers.push({ panel: Number(headers['x-panel-id'] || 0), status: response.status(), body: await response.json() });
    } catch (error) {
      problems.push(String(error));
    }
  });
  // Grafana loads a panel's data only when the panel is visible, so the window is as high as the dashboard.
  await page.setViewport({ width: WIDTH, height });
  await page.goto(url, { waitUntil: 'networkidle0', timeout: TIMEOUT_MS });
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  fs.writeFileSync(path.join(folder, `${uid}.json`), JSON.stringify({ answers, problems }));
  await page.screenshot({ path: path.join(folder, `${uid}.png`) });
  await page.close();
}

main().catch((error) => { console.error(error); process.exit(1); });
