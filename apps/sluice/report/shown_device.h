// The specification of a device for people.
#pragma once

#include <string>
#include <string_view>

namespace sluice::app {

// `name`, which is EngineDevice::name() or that of a profile, with rates and times in units that fit, and
// with blanks where a line may be broken: "emulated:link=2 GB/s, latency=20.0 µs, …",
// "cuda:0, NVIDIA H200, compute 9.0". A name that this program does not read stays as it is.
std::string shown_device(std::string_view name);

}  // namespace sluice::app
