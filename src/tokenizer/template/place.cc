#include "tokenizer/template/place.h"

#include <fmt/format.h>

#include "base/shown_text.h"

namespace sluice::tokenizer::jinja {

Error template_error(std::string_view name, Place place, std::string_view message) {
  return Error(ErrorKind::kInvalid, shown_text(message))
      .in(fmt::format("{}, line {}, column {}", name, place.line, place.column));
}

}  // namespace sluice::tokenizer::jinja
