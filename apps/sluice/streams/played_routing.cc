#include "streams/played_routing.h"

#include <fmt/format.h>

#include "streams/standard_error.h"
#include "streams/terminal_columns.h"

namespace sluice::app {

void print_played(std::string_view played) {
  if (!played.empty()) print_wrapped(fmt::format("routing: {}", played));
}

void add_played(Json& json, const std::string& played) {
  if (!played.empty()) json["played"] = played;
}

void tell_played(std::string_view path, std::string_view played) {
  if (!played.empty()) print_message("sluice: {}: its routing is {}, and not its model's own", path, played);
}

}  // namespace sluice::app
