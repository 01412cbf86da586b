/* text: see text.h. */
#include "text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void record_say(const char* format, ...) {
  char text[PATH_MAX + 512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  char line[PATH_MAX + 544];
  const int whole = snprintf(line, sizeof line, "headway record: %s\n", text);
  if (whole > 0 && write(2, line, (size_t)whole) < 0) return;
}

size_t record_append_json(char* to, size_t room, const char* text) {
  size_t at = 0;
  for (const unsigned char* c = (const unsigned char*)text; *c && at + 7 < room; ++c) {
    if (*c == '"' || *c == '\\') {
      to[at++] = '\\';
      to[at++] = (char)*c;
    } else if (*c < 0x20 || *c == 0x7f) {
      at += (size_t)snprintf(to + at, room - at, "\\u%04x", *c);
    } else {
      to[at++] = (char)*c;
    }
  }
  to[at] = 0;
  return at;
}

void record_add_text(RecordText* list, const char* text) {
  const size_t length = strlen(text);
  if (list->length + length + 2 > list->room) {
    const size_t room = (list->room + length + 2) * 2;
    char* larger = realloc(list->data, room);
    if (!larger) return;
    list->data = larger;
    list->room = room;
  }
  const char between = list->length ? ',' : '[';
  list->data[list->length++] = between;
  memcpy(list->data + list->length, text, length);
  list->length += length;
}
