// What went wrong inside a template, before its place is known. The evaluator adds that and throws Error.
#pragma once

#include <string>
#include <utility>

namespace sluice::tokenizer::jinja {

struct Fault {
  explicit Fault(std::string what) : message(std::move(what)) {}
  std::string message;
};

}  // namespace sluice::tokenizer::jinja
