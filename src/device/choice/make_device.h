// Makes the device that a specification names, once it is known how much of its memory is to be used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "device/accountant.h"
#include "device/choice/device_spec.h"
#include "device/chunked_link.h"
#include "device/device.h"
#include "device/gpu_info.h"

namespace sluice::device {

// What is known of a device before it is made.
struct DeviceFacts {
  std::string hardware = {};  // "NVIDIA H200, compute 9.0"; empty: it is played
  // What its driver takes of its memory for this program, once something is there.
  Bytes context = 0;
  // What this program can have of its memory, the context included. Empty: it is memory of this machine.
  std::optional<Bytes> free = {};
};

// As LinkOptions::fault.
using CopyFault = std::function<Fault(std::uint64_t copy, Bytes moved)>;

struct DeviceOptions {
  Bytes memory = 0;            // bytes of its arena, beside the context
  Accountant* host = nullptr;  // what the host has for its copies is charged there; null: nothing is
  CopyFault fault = {};        // for tests
};

// Begins to use a GPU. Error(kUnsupported) in a build without CUDA and without a driver, (kNotFound) without
// such a GPU, (kIo) if it does not answer. It is never asked twice for one engine.
DeviceFacts device_facts(const DeviceSpec& spec);

// Errors of device_facts(); (kIo), (kBudget) if that memory is not to be had.
std::unique_ptr<Device> make_device(const DeviceSpec& spec, DeviceOptions options);

// What stands in the place of these in tests.
struct DeviceMaker {
  std::function<DeviceFacts(const DeviceSpec&)> facts = device_facts;
  std::function<std::unique_ptr<Device>(const DeviceSpec&, DeviceOptions)> make = make_device;
};

// The device that `auto` takes: the first GPU. Creates no context.
struct FoundDevice {
  std::optional<DeviceSpec> spec = {};
  std::string why = {};  // there is none: "built without CUDA"
};
FoundDevice find_device();

// "NVIDIA H200, compute 9.0".
std::string hardware_text(std::string_view name, int compute_major, int compute_minor);

// Error(kUnsupported), (kNotFound): the GPU cannot be used on a machine that lacks so much and has these.
void check_is_there(const CudaSpec& spec, GpuLack lack, std::span<const GpuInfo> gpus);

}  // namespace sluice::device
