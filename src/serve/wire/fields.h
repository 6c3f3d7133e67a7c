// The members of an object in a request's body, read by type and range. Every error names the field by its
// path: 'messages[2].content[0].type'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/json/body_value.h"
#include "serve/wire/api_error.h"

namespace sluice::serve {

// null counts as absent everywhere. The value must outlive this.
class Fields {
 public:
  // ApiError if the value is no object.
  Fields(const BodyValue& object, std::string path);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const BodyValue* find(std::string_view name) const { return object_->find(name); }
  const BodyValue& need(std::string_view name) const;

  std::optional<double> number(std::string_view name, double min, double max) const;
  // As above, but `min` itself is refused.
  std::optional<double> number_above(std::string_view name, double min, double max) const;
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;
  std::optional<bool> boolean(std::string_view name) const;
  std::optional<std::string> string(std::string_view name) const;
  const BodyValue* array(std::string_view name, std::size_t most) const;  // null: absent
  std::optional<Fields> object(std::string_view name) const;
  // One of these words.
  std::optional<std::string> word(std::string_view name, std::vector<std::string_view> words) const;

  std::string path(std::string_view name) const;
  const BodyValue& value() const { return *object_; }
  [[noreturn]] void wrong_type(std::string_view name, std::string_view expected) const;
  [[noreturn]] void wrong_value(std::string_view name, std::string_view expected) const;

 private:
  const BodyValue* object_;
  std::string path_;  // empty: the body itself
};

[[noreturn]] void refuse_type(const std::string& path, std::string_view expected, const BodyValue& found);
[[noreturn]] void refuse_value(const std::string& path, std::string_view expected, const BodyValue& found);
std::string element_path(const std::string& path, std::size_t index);

struct Call;  // serve/wire/service.h

// The body of a request, one object. ApiError for what is none, and for more values than `memory` has room
// for.
BodyValue read_body(std::string_view text, std::size_t memory = BodyLimits{}.memory);
BodyValue read_body(const Call& call);

}  // namespace sluice::serve
