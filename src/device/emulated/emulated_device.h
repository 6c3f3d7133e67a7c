// A device that this machine plays: its own memory, threads and link, and time as a specification says. For
// tests of order, overlap, bits and budgets, and of simulators; no speed of the program rests on it.
// docs/devices.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "device/chunked_link.h"
#include "device/clock.h"
#include "device/device.h"
#include "device/emulated/arena.h"
#include "device/emulated/emulated_spec.h"

namespace sluice::device {

struct EmulatedOptions {
  EmulatedSpec spec;
  Bytes memory = 0;
  std::optional<Guard> guard;  // none: default_guard()
  Clock* clock = nullptr;      // null: the machine's. Must outlive the device
  // For tests, as LinkOptions::fault.
  std::function<Fault(std::uint64_t copy, Bytes moved)> fault = {};
};

// Operations really run, on the device's threads, and copies really move bytes; each then waits until its
// model's end (Pacer). A product takes max(1, tokens / 32) · weight bytes / `compute`, whatever else is
// done in its operation; an operation without products takes its real time. The device paces each piece by
// its own rates and knows no other model. Threads sleep while they wait. With `host` it also has a pace for
// the experts that the host computes.
//
// `memory` bytes are its own, beside the process's budget. Error(kIo) if the system refuses.
std::unique_ptr<Device> make_emulated_device(EmulatedOptions options);

}  // namespace sluice::device
