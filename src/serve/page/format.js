// Numbers as people read them.

const WHOLE = new Intl.NumberFormat('en');

export const whole = (number) => WHOLE.format(Math.round(number));

// Three figures at most: 0.42, 4.2, 42, 420.
export function short(number) {
  if (!Number.isFinite(number)) return '–';
  const size = Math.abs(number);
  if (size >= 100 || number === 0) return whole(number);
  return number.toFixed(size >= 10 ? 1 : 2).replace(/\.?0+$/, '');
}

export function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(number) >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? whole(number) : short(number)}\u00a0${units[unit]}`;
}

export function rate(bytesPerSecond) {
  if (bytesPerSecond >= 1e8) return `${(bytesPerSecond / 1e9).toFixed(2)}\u00a0GB/s`;
  return `${short(bytesPerSecond / 1e6)}\u00a0MB/s`;
}

export const percent = (part, all) => (all > 0 ? `${Math.round((100 * part) / all)}\u00a0%` : '–');

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${short(milliseconds)}\u00a0ms`;
  if (milliseconds < 60000) return `${short(milliseconds / 1000)}\u00a0s`;
  return `${Math.floor(milliseconds / 60000)}\u00a0min ${Math.round((milliseconds % 60000) / 1000)}\u00a0s`;
}

// "1 token", "2 tokens".
export const count = (number, noun) => `${whole(number)}\u00a0${noun}${number === 1 ? '' : 's'}`;
