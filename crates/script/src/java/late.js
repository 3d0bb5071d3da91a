// What is had of the parts above.

const zones = {
  getOffset: zone => time => offsetOf(Number(time), zone),
  getRawOffset: (zone, time = Date.now()) => () => rawOffset(time, zone),
};
return {
  'java.lang.String': JavaString, 'java.util.Formatter': Formatter, 'java.util.Calendar': Calendar, 'java.util.GregorianCalendar': Calendar,
  'java.text.SimpleDateFormat': SimpleDateFormat, 'java.text.DecimalFormat': DecimalFormat,
  'java.text.DecimalFormatSymbols': DecimalFormatSymbols, 'java.math.BigDecimal': BigDecimal, 'java.math.BigInteger': BigInteger,
  'java.math.RoundingMode': RoundingMode,
  'java.util.regex.Pattern': Pattern, 'java.util.regex.Matcher': Matcher, 'javax.xml.namespace.QName': JavaQName,
  'org.apache.axiom.om.util.AXIOMUtil': AXIOMUtil, 'org.apache.axiom.om.xpath.AXIOMXPath': AXIOMXPath,
  'org.apache.axiom.om.OMAbstractFactory': OMAbstractFactory, 'java.net.URI': URI, 'java.util.Optional': Optional,
  'org.apache.commons.lang.StringUtils': StringUtils, 'org.apache.commons.lang3.StringUtils': StringUtils,
  'org.apache.commons.lang.StringEscapeUtils': StringEscapeUtils, 'org.apache.commons.lang3.StringEscapeUtils': StringEscapeUtils,
  'org.apache.commons.text.StringEscapeUtils': StringEscapeUtils,
  ...clock, zones, stringMethods,
};
