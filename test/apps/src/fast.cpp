#include "fast.hpp"

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include <cstdlib>
#include <cstring>

namespace {

// Encapsulation header (plain CDR, little endian) and length of the sequence.
constexpr uint32_t header_size = 8;

template<typename T>
T * checked(T * pointer, const char * what)
{
  if (!pointer)
    die("cannot create the %s", what);
  return pointer;
}

fdds::DomainParticipant * new_participant(int64_t domain)
{
  auto factory = fdds::DomainParticipantFactory::get_instance();
  factory->load_profiles();
  fdds::DomainParticipantQos qos;
  factory->get_default_participant_qos(qos);
  qos.wire_protocol().builtin.readerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.wire_protocol().builtin.writerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  if (!std::getenv("FASTRTPS_DEFAULT_PROFILES_FILE")) {
    // Shared memory would pass by the network under test.
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
  }
  return checked(factory->create_participant(static_cast<fdds::DomainId_t>(domain), qos), "participant");
}

template<typename Qos>
Qos with_service_qos(Qos qos)
{
  qos.reliability().kind = fdds::RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = fdds::VOLATILE_DURABILITY_QOS;
  qos.history().kind = fdds::KEEP_LAST_HISTORY_QOS;
  qos.history().depth = 10;
  qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off();
  return qos;
}

fdds::Topic * new_topic(fdds::DomainParticipant * participant, const std::string & name, const std::string & type)
{
  fdds::TypeSupport support(new OctetsType(type));
  support.register_type(participant);
  return checked(participant->create_topic(name, type, fdds::TOPIC_QOS_DEFAULT), "topic");
}

}  // namespace

OctetsType::OctetsType(const std::string & name)
{
  setName(name.c_str());
  m_typeSize = header_size + 1024;  // a start: larger samples get more
  m_isGetKeyDefined = false;
}

bool OctetsType::serialize(void * data, rtps::SerializedPayload_t * payload)
{
  const Octets & octets = *static_cast<Octets *>(data);
  const uint32_t size = static_cast<uint32_t>(octets.size());
  if (payload->max_size < header_size + size)
    return false;
  const uint8_t header[header_size] = {0, CDR_LE, 0, 0, static_cast<uint8_t>(size), static_cast<uint8_t>(size >> 8),
    static_cast<uint8_t>(size >> 16), static_cast<uint8_t>(size >> 24)};
  std::memcpy(payload->data, header, header_size);
  std::memcpy(payload->data + header_size, octets.data(), size);
  payload->encapsulation = CDR_LE;
  payload->length = header_size + size;
  return true;
}

bool OctetsType::deserialize(rtps::SerializedPayload_t * payload, void * data)
{
  const uint8_t * p = payload->data;
  if (payload->length < header_size || p[1] != CDR_LE)
    return false;
  const uint32_t size = p[4] | p[5] << 8 | p[6] << 16 | static_cast<uint32_t>(p[7]) << 24;
  if (size > payload->length - header_size)
    return false;
  static_cast<Octets *>(data)->assign(p + header_size, p + header_size + size);
  return true;
}

std::function<uint32_t()> OctetsType::getSerializedSizeProvider(void * data)
{
  return [data] { return header_size + static_cast<uint32_t>(static_cast<Octets *>(data)->size()); };
}

void * OctetsType::createData() { return new Octets; }

void OctetsType::deleteData(void * data) { delete static_cast<Octets *>(data); }

bool OctetsType::getKey(void *, rtps::InstanceHandle_t *, bool) { return false; }

ServiceEnd new_service_end(const std::string & service, int64_t domain, Role role,
  fdds::DataReaderListener * reader_listener, fdds::DataWriterListener * writer_listener)
{
  ServiceEnd end{};
  end.participant = new_participant(domain);
  fdds::Topic * request = new_topic(end.participant, "rq/" + service + "Request", "fogplr_test::srv::dds_::Echo_Request_");
  fdds::Topic * reply = new_topic(end.participant, "rr/" + service + "Reply", "fogplr_test::srv::dds_::Echo_Response_");
  const bool server = role == Role::server;
  auto publisher = checked(end.participant->create_publisher(fdds::PUBLISHER_QOS_DEFAULT), "publisher");
  auto subscriber = checked(end.participant->create_subscriber(fdds::SUBSCRIBER_QOS_DEFAULT), "subscriber");
  auto writer_qos = with_service_qos(publisher->get_default_datawriter_qos());
  auto reader_qos = with_service_qos(subscriber->get_default_datareader_qos());
  end.writer = checked(publisher->create_datawriter(server ? reply : request, writer_qos, writer_listener), "writer");
  end.reader = checked(subscriber->create_datareader(server ? request : reply, reader_qos, reader_listener), "reader");
  return end;
}

void delete_service_end(void * argument)
{
  auto participant = static_cast<ServiceEnd *>(argument)->participant;
  participant->delete_contained_entities();
  fdds::DomainParticipantFactory::get_instance()->delete_participant(participant);
}
