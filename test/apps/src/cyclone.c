#include "cyclone.h"

#include <stdio.h>
#include <string.h>

int32_t checked(int32_t value, const char *what)
{
  if (value < 0)
    die("%s: %s", what, dds_strretcode(value));
  return value;
}

dds_entity_t new_participant(int64_t domain)
{
  dds_domainid_t id = domain == 0 ? DDS_DOMAIN_DEFAULT : (dds_domainid_t)domain;
  return checked(dds_create_participant(id, NULL, NULL), "create a participant");
}

static dds_qos_t *service_qos(dds_entity_t participant, enum service_role role)
{
  dds_guid_t guid;
  checked(dds_get_guid(participant, &guid), "guid");
  char user_data[ID_SIZE + 16];
  int n = snprintf(user_data, sizeof user_data, "%s=%x", role == SERVICE_SERVER ? "serviceid" : "clientid", guid.v[0]);
  for (size_t i = 1; i < sizeof guid.v; i++)
    n += snprintf(user_data + n, sizeof user_data - (size_t)n, ".%x", guid.v[i]);
  n += snprintf(user_data + n, sizeof user_data - (size_t)n, ";");
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_INFINITY);
  dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 10);
  dds_qset_writer_data_lifecycle(qos, false);
  dds_qset_userdata(qos, user_data, (size_t)n);
  return qos;
}

struct service_end new_service_end(const char *service, int64_t domain, enum service_role role)
{
  char request_name[256], reply_name[256];
  snprintf(request_name, sizeof request_name, "rq/%sRequest", service);
  snprintf(reply_name, sizeof reply_name, "rr/%sReply", service);
  struct service_end end = {.participant = new_participant(domain)};
  dds_entity_t request = checked(dds_create_topic(end.participant, &echo_request_desc, request_name, NULL, NULL), "request topic");
  dds_entity_t reply = checked(dds_create_topic(end.participant, &echo_response_desc, reply_name, NULL, NULL), "reply topic");
  dds_qos_t *qos = service_qos(end.participant, role);
  bool server = role == SERVICE_SERVER;
  end.writer = checked(dds_create_writer(end.participant, server ? reply : request, qos, NULL), "writer");
  end.reader = checked(dds_create_reader(end.participant, server ? request : reply, qos, NULL), "reader");
  dds_delete_qos(qos);
  return end;
}

struct stream_end new_stream_end(dds_entity_t participant, const char *name, bool reliable, int64_t depth)
{
  char topic_name[256];
  snprintf(topic_name, sizeof topic_name, "rt/%s", name);
  struct stream_end end = {.qos = dds_create_qos()};
  dds_qset_reliability(end.qos, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_INFINITY);
  dds_qset_durability(end.qos, DDS_DURABILITY_VOLATILE);
  dds_qset_history(end.qos, depth ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL, (int32_t)depth);
  end.topic = checked(dds_create_topic(participant, &stream_desc, topic_name, NULL, NULL), "topic");
  return end;
}

bool user_data_value(const dds_qos_t *qos, const char *key, char *id)
{
  void *data = NULL;
  size_t size = 0;
  if (!dds_qget_userdata(qos, &data, &size) || !data)
    return false;
  size_t length = strlen(key);
  bool found = size > length && memcmp(data, key, length) == 0 && ((char *)data)[length] == '=';
  if (found) {
    size_t i = 0;
    for (const char *p = (char *)data + length + 1; i < ID_SIZE - 1 && p < (char *)data + size && *p != ';'; p++)
      id[i++] = *p;
    id[i] = '\0';
  }
  dds_free(data);
  return found;
}

int matched_writers(dds_entity_t reader)
{
  return checked(dds_get_matched_publications(reader, NULL, 0), "matched writers");
}

int matched_readers(dds_entity_t writer)
{
  return checked(dds_get_matched_subscriptions(writer, NULL, 0), "matched readers");
}

dds_entity_t new_waitset(dds_entity_t participant, dds_entity_t reader)
{
  dds_entity_t waitset = checked(dds_create_waitset(participant), "waitset");
  dds_entity_t condition = checked(dds_create_readcondition(reader, DDS_ANY_STATE), "read condition");
  checked(dds_waitset_attach(waitset, condition, 0), "waitset");
  return waitset;
}

void delete_participant(void *argument)
{
  dds_delete(*(dds_entity_t *)argument);
}
