#include "tokenizer/template/meter.h"

#include <fmt/format.h>
#include <time.h>

#include "tokenizer/template/fault.h"

namespace sluice::tokenizer::jinja {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Meter::Meter(const TemplateLimits& limits) : limits_(limits), started_(thread_seconds()) {}

void Meter::step() {
  if (++steps_ > limits_.steps)
    throw Fault(fmt::format("the template takes more than {} steps", limits_.steps));
  work(64);
}

void Meter::work(std::size_t bytes) {
  effort_ += bytes;
  if (effort_ >= kMiB) ask_clock();
}

void Meter::ask_clock() {
  effort_ = 0;
  if (thread_seconds() - started_ > limits_.seconds)
    throw Fault(fmt::format("the template takes more than {} s of processor time", limits_.seconds));
}

void Meter::check_value(std::size_t bytes) const {
  if (bytes > limits_.value_bytes)
    throw Fault(fmt::format("the template makes a value of more than {} MiB", limits_.value_bytes / kMiB));
}

void Meter::grow(std::size_t bytes) {
  if (bytes > limits_.memory_bytes - memory_)
    throw Fault(fmt::format("the template's values take more than {} MiB", limits_.memory_bytes / kMiB));
  memory_ += bytes;
  work(bytes);
}

void Meter::enter_call() {
  if (calls_ >= limits_.calls)
    throw Fault(fmt::format("macros call each other more than {} deep", limits_.calls));
  ++calls_;
}

void Meter::too_deep() {
  --depth_;
  throw Fault(fmt::format("macros and expressions nest more than {} deep", kMostDepth));
}

}  // namespace sluice::tokenizer::jinja
