// The marks of a family, as they stand in the text of an answer.
#pragma once

#include <string>

#include "tokenizer/chat/calls/family.h"
#include "tokenizer/chat/calls/marks.h"

namespace sluice::tokenizer {

// The members have the names and the meaning that they have in CallFamily.
struct CallMarks {
  CallMarks(const CallFamily& row, MarkTokens& tokens)
      : family(row),
        section_begin(tokens.tagged(row.section_begin)),
        list_begin(tokens.tagged(row.list_begin)),
        call_begin(tokens.tagged(row.call_begin)),
        name_begin(tokens.tagged(row.name_begin)),
        id_begin(tokens.tagged(row.id_begin)),
        name_end(tokens.tagged(row.name_end)),
        json_begin(tokens.tagged(row.json_begin)),
        json_end(tokens.tagged(row.json_end)),
        key_begin(tokens.tagged(row.key_begin)),
        key_end(tokens.tagged(row.key_end)),
        value_begin(tokens.tagged(row.value_begin)),
        value_end(tokens.tagged(row.value_end)),
        call_end(tokens.tagged(row.call_end)),
        separator(tokens.tagged(row.separator)),
        list_end(tokens.tagged(row.list_end)),
        section_end(tokens.tagged(row.section_end)) {}

  const CallFamily& family;
  const std::string section_begin, list_begin, call_begin, name_begin, id_begin, name_end, json_begin,
      json_end, key_begin, key_end, value_begin, value_end, call_end, separator, list_end, section_end;
};

}  // namespace sluice::tokenizer
