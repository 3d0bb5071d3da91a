<!-- The same with one loop over the orders. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:m="http://services.samples/xsd">
<xsl:output method="xml" omit-xml-declaration="yes"/>
<xsl:template match="/"><soapenv:Envelope><soapenv:Body><xsl:apply-templates select="//m:skcotSyub"/></soapenv:Body></soapenv:Envelope></xsl:template>
<xsl:template match="m:skcotSyub"><m:buyStocks><xsl:for-each select="redro"><order><symbol><xsl:value-of select="lobmys"/></symbol><buyerID><xsl:value-of select="DIreyub"/></buyerID><price><xsl:value-of select="ecirp"/></price><volume><xsl:value-of select="emulov"/></volume></order></xsl:for-each></m:buyStocks></xsl:template>
</xsl:stylesheet>
