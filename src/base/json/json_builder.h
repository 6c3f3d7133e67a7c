// Puts a JSON value together from what a parser finds in a text, in that order.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_value.h"

namespace sluice {

// `root` becomes the value; it must outlive this and stay where it is. Thread-compatible.
class JsonBuilder {
 public:
  explicit JsonBuilder(Json& root) : root_(root) {}

  // Containers from the root down to the one being read, itself included.
  std::size_t depth() const { return open_.size(); }

  void add(Json value) { place(std::move(value)); }
  void open(Json container) { open_.push_back(place(std::move(container))); }
  void close() { open_.pop_back(); }
  // The next value belongs to this key of the object being read. False if the object has it already.
  bool key(const std::string& key) {
    const auto [position, inserted] = open_.back()->get_ref<Json::object_t&>().emplace(key, nullptr);
    slot_ = &position->second;
    return inserted;
  }

 private:
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array())
      return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    *slot_ = std::move(value);
    return slot_;
  }

  Json& root_;
  std::vector<Json*> open_;  // none moves while a child is open
  Json* slot_ = nullptr;     // value of the last key
};

}  // namespace sluice
